"""Tables that can't be read as they are: one sentence that names the table and the cause, and the poll goes on."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from harness.model import Disorder, KafkaAddress, Segment, TapeSpec
from harness.results.base import ResultLocation
from harness.results.redis_scan import HASH, Row, UnreadableError
from harness.results.registry import open_results
from harness.results.sampler import PlainObserver
from harness.util.clock import Clock
from tests.quick.cases import ANY
from tests.services.made_tables import NAME, NAMESPACE, Made, MadeDelta, MadeIceberg, MadeParquet, readers_of

TAPE = TapeSpec(1, (Segment(1000, 10.0, 10.0),), 1, 20, 2, campaigns=2, ads_per_campaign=1, disorder=Disorder())


@pytest.fixture(scope="module", autouse=True)
def readers():
    with readers_of("spark-delta", "spark-iceberg"):
        yield


def source(table: Made) -> Any:
    manifest = replace(ANY, results=table.results)
    place = ResultLocation(
        None, KafkaAddress(""), "", ["a", "b"], {}, 10_000, 10_000, 0, manifest, Path(), Path(), Clock()
    )
    return open_results(replace(place, folder=table.folder, manifest=replace(manifest, sums=True)))


def row(count: int = 3) -> pa.Table:
    return pa.table({"campaign": ["a"], "opens": [0], "count": [count]})


def next_commit(folder: Path) -> Path:
    log = folder / NAME / "_delta_log"
    return log / f"{len([*log.glob('*.json')]):020}.json"


def protocol(**told: object) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        next_commit(folder).write_text(json.dumps({"protocol": told}) + "\n")

    return damage


def mapped(folder: Path) -> None:
    first = folder / NAME / "_delta_log" / f"{0:020}.json"
    told = next(each["metaData"] for each in map(json.loads, first.read_text().splitlines()) if "metaData" in each)
    schema = json.loads(told["schemaString"])
    for number, column in enumerate(schema["fields"], 1):
        column["metadata"] = {
            "delta.columnMapping.id": number,
            "delta.columnMapping.physicalName": f"col-{number}",
        }
    told |= {
        "schemaString": json.dumps(schema),
        "configuration": {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "3"},
    }
    lines = ({"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}}, {"metaData": told})
    next_commit(folder).write_text("".join(json.dumps(each) + "\n" for each in lines))


def commit_of(text: str) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        next_commit(folder).write_text(text)

    return damage


def metadata_of(edit: Callable[[str], str]) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        newest = max((folder / NAMESPACE / NAME / "metadata").glob("*.metadata.json"))
        newest.write_text(edit(newest.read_text()))

    return damage


def files_torn(pattern: str) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        for each in folder.rglob(pattern):
            each.write_bytes(b"PAR1")

    return damage


def files_gone(pattern: str) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        for each in folder.rglob(pattern):
            each.unlink()

    return damage


DAMAGES = {
    "a newer protocol": (MadeDelta, protocol(minReaderVersion=9, minWriterVersion=9), r"version 9\. Let the job write"),
    "a feature of the future": (
        MadeDelta,
        protocol(minReaderVersion=3, minWriterVersion=7, readerFeatures=["x"], writerFeatures=["x"]),
        r"'x' is not supported\. Let the job write",
    ),
    "column mapping": (MadeDelta, mapped, "understand columnMapping, .*columnMapping.mode = none"),
    "a commit that is no JSON": (MadeDelta, commit_of("{ no log"), r"Json error[^<]*$"),
    "half a commit": (MadeDelta, commit_of('{"add":{"path":"x"'), r"Truncated record[^<]*$"),
    "a log without its beginning": (MadeDelta, files_gone("00000000000000000000.json"), "No table metadata"),
    "torn files of Delta": (MadeDelta, files_torn("*.parquet"), "ArrowInvalid"),
    "files that Delta lacks": (MadeDelta, files_gone("*.parquet"), "FileNotFoundError"),
    "a newer format": (
        MadeIceberg,
        metadata_of(lambda text: text.replace('"format-version":2', '"format-version":99')),
        r"tag '99'[^\[]*$",
    ),
    "half of the metadata": (MadeIceberg, metadata_of(lambda text: text[: len(text) // 2]), r"Invalid JSON[^\[]*$"),
    "no metadata": (MadeIceberg, metadata_of(lambda _: ""), r"Invalid JSON[^\[]*$"),
    "torn manifests": (MadeIceberg, files_torn("*.avro"), "can't be read"),
    "files that Iceberg lacks": (MadeIceberg, files_gone("*.parquet"), "FileNotFoundError"),
    "torn files of Parquet": (MadeParquet, files_torn("*.parquet"), "ArrowInvalid"),
}


@pytest.mark.parametrize("what", DAMAGES)
def test_what_a_table_can_t_be_read_for_is_one_sentence(tmp_path, what):
    made, damage, words = DAMAGES[what]
    table = made(tmp_path)
    table.add(row())
    table.add(row())
    damage(tmp_path)

    with pytest.raises(UnreadableError, match=words) as told:
        source(table).rows()
    assert str(tmp_path / table.results.partition(":")[2]) in str(told.value)
    assert "\n" not in str(told.value)
    assert len(str(told.value)) < 500


@pytest.mark.parametrize("made", [MadeDelta, MadeIceberg])
def test_versions_after_one_that_can_t_be_read_are_read(tmp_path, made):
    table = made(tmp_path)
    observer = source(table).observer(TAPE)
    assert isinstance(observer, PlainObserver)
    observer._poll(full=True)
    table.add(row())
    table.add(pa.table({"campaign": ["a"], "opens": [0], "count": [1]}))
    for each in sorted(tmp_path.rglob("*.parquet"), key=lambda path: path.stat().st_mtime_ns)[-1:]:
        each.rename(each.with_suffix(".hidden"))
    table.take_back()
    with pytest.raises(UnreadableError):
        observer._poll(full=True)
    observer._poll(full=True)

    assert observer._recorder.sampled(2, 0.0).columns["count"].tolist() == [3]
    assert source(table).rows() == [Row("a", "0", "3", HASH)]


@pytest.mark.parametrize("made", [MadeDelta, MadeIceberg])
def test_a_table_that_was_made_anew_is_read_anew(tmp_path, made):
    table = made(tmp_path)
    observer = source(table).observer(TAPE)
    assert isinstance(observer, PlainObserver)
    for count in (3, 4):
        table.add(row(count))
    observer._poll(full=True)
    shutil.rmtree(tmp_path / table.results.partition(":")[2])
    observer._poll(full=True)
    table.add(row(5))
    observer._poll(full=True)

    assert observer._recorder.sampled(2, 0.0).columns["count"].tolist() == [7, 0, 5]
