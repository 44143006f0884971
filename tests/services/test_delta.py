"""Results in a real Delta table, as another program writes it."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from harness.engines import environments
from harness.engines.manifest import load
from harness.model import Disorder, KafkaAddress, Segment, TapeSpec
from harness.results.base import ResultLocation
from harness.results.delta import Delta
from harness.results.redis_scan import HASH, NO_RESULT, Row, UnreadableError
from harness.results.sampler import PlainObserver
from harness.util.clock import Clock
from harness.util.wait import wait_until
from tests.quick.cases import ANY

MANIFEST = replace(ANY, results="delta:counts", sums=True)

TAPE = TapeSpec(1, (Segment(1000, 10.0, 10.0),), 1, 20, 2, campaigns=2, ads_per_campaign=1, disorder=Disorder())


@pytest.fixture
def table(tmp_path):
    """Append columns to the table, or write it anew."""
    folders = environments.prepare(load("spark-delta"), print).packages
    sys.path += map(str, folders)
    from deltalake import write_deltalake

    def write(mode: str = "append", *, by: list[str] | None = None, **columns: list[object]) -> None:
        write_deltalake(tmp_path / "counts", pa.table(columns), mode=mode, partition_by=by)

    yield write
    for each in folders:
        sys.path.remove(str(each))


def source(folder: Path, **described) -> Delta:
    manifest = replace(MANIFEST, **described)
    place = ResultLocation(
        None, KafkaAddress(""), "", ["a", "b"], {}, 10_000, 10_000, 0, manifest, Path(), Path(), Clock()
    )
    return Delta(replace(place, folder=folder))


def test_versions_are_added_up_as_they_come_and_go(tmp_path, table):
    found = source(tmp_path)
    assert found.rows() == []
    table(campaign=["a"], opens=[0], count=[3])
    assert found.rows() == [Row("a", "0", "3", HASH)]
    table(campaign=["a", "b"], opens=[0, 0], count=[4, 1])
    assert sorted(found.rows()) == [Row("a", "0", "7", HASH), Row("b", "0", "1", HASH)]
    assert found.rows() is found.rows()
    table("overwrite", campaign=["a"], opens=[0], count=[5])

    assert found.rows() == [Row("a", "0", "5", HASH)]


def test_a_wrong_value_that_stood_for_a_moment_was_seen(tmp_path, table):
    table(campaign=["a"], opens=[0], count=[3])
    observer = source(tmp_path).observer(TAPE)
    assert isinstance(observer, PlainObserver)
    seen = observer._recorder._rows["count"]
    observer.start()
    for number, count in enumerate((30, 3), 1):
        wait_until(lambda: len(seen) == number, deadline_s=20, what="the value before to be seen")  # noqa: B023
        table("overwrite", campaign=["a"], opens=[0], count=[count])
    sampled = observer.stop()

    assert sampled.columns["count"].tolist() == [3, 30, 3]
    assert sampled.looks.errors == 0


def test_a_row_that_is_there_twice_stays_two_without_sums(tmp_path, table):
    table(campaign=["a", "a"], opens=[0, 0], count=[3, 3])

    assert source(tmp_path, sums=False).rows() == 2 * [Row("a", "0", "3", HASH)]


def test_a_partition_is_a_column_and_null_is_named(tmp_path, table):
    table(by=["campaign"], campaign=["a b", None], opens=[0, 0], count=[3, 1])

    assert {(row.key, row.kind) for row in source(tmp_path).rows()} >= {("a b", HASH)}
    assert [row.kind for row in source(tmp_path).rows() if row.key != "a b"] == [NO_RESULT]


def test_a_table_that_needs_a_newer_reader_and_a_broken_log_are_told(tmp_path, table):
    table(campaign=["a"], opens=[0], count=[3])
    log = tmp_path / "counts" / "_delta_log"
    (log / "00000000000000000001.json").write_text(
        '{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["deletionVectors"],'
        '"writerFeatures":["deletionVectors"]}}\n'
    )
    with pytest.raises(UnreadableError, match=r"deletionVectors.*delta.enableDeletionVectors = false"):
        source(tmp_path).rows()
    (log / "00000000000000000002.json").write_text("{ no log")

    with pytest.raises(UnreadableError, match="can't be read"):
        source(tmp_path).rows()
