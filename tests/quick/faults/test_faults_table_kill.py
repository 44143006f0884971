"""Kills at two moments of a write to a table, on files that the test moves: what is struck, and only with proof."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.faults import table
from harness.faults.registry import create, parse
from harness.faults.run_at_poll import Moment
from harness.model import FaultReport
from harness.results.table_commits import LOGS, is_whole
from harness.util.wait import wait_until
from tests.quick.cases import SPEC
from tests.quick.faults.test_faults import MANIFEST, ScriptedEngine, progress

WHOLE = b"PAR1 rows PAR1"
MARKED = replace(MANIFEST, evidence="spark-checkpoint")


class Scene:
    """A table and an engine whose batch 4 is open."""

    def __init__(self, folder: Path, results: str, fault: str) -> None:
        self.folder = folder
        self.engine = ScriptedEngine(plans={4: b"plan"}, commits={0, 1, 2, 3}, newest=progress(3, 30))
        manifest = replace(MARKED, results=f"{results}:counts")
        self.fault = create(replace(SPEC, sink="default", fault=parse(f"{fault}@now")), manifest)
        self.poll()

    def poll(self) -> FaultReport:
        field: Any = SimpleNamespace(table=self.folder)
        engine: Any = self.engine
        self.fault.poll(Moment(1000, 1, engine, self.engine.newest, 1000, field))
        (report,) = self.fault.reports()
        return report

    def sees(self, text: str) -> None:
        wait_until(lambda: text in self.engine.story, deadline_s=10, what=text, state=lambda: str(self.engine.story))

    def replays(self) -> FaultReport:
        """The engine is up again and commits batch 4."""
        self.poll()
        self.engine.commits.add(4)
        return self.poll()

    def end(self) -> None:
        engine: Any = self.engine
        self.fault.heal(Moment(2000, 1, engine, self.engine.newest, 1000))


def write(path: Path, content: bytes | str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    part.write_bytes(content if isinstance(content, bytes) else content.encode())
    part.rename(path)


def of_delta(folder: Path, number: int, *, rows: bool = True) -> None:
    action = {"add": {"path": "part-0.parquet", "dataChange": True}} if rows else {"metaData": {}}
    write(folder / "_delta_log" / f"{number:020}.json", f'{{"commitInfo":{{}}}}\n{json.dumps(action)}\n')


def of_iceberg(folder: Path, number: int, *, rows: bool = True) -> None:
    snapshot = {"snapshot-id": number, "summary": {"operation": "append", "added-records": "2" if rows else "0"}}
    text = json.dumps({"current-snapshot-id": number, "snapshots": [snapshot]})
    write(folder / "metadata" / f"v{number}.metadata.json", text)


def of_parquet(folder: Path, number: int, *, rows: bool = True) -> None:
    write(folder / "_spark_metadata" / str(number), "v1\n{}" if rows else "v1")


COMMITS = {"delta": of_delta, "iceberg": of_iceberg, "parquet": of_parquet}
NAMES = {"delta": "version 7", "iceberg": "version 7", "parquet": "_spark_metadata/7"}


@pytest.mark.parametrize("store", COMMITS)
def test_a_batch_that_the_table_has_and_the_checkpoint_lacks_is_killed(tmp_path, store):
    COMMITS[store](tmp_path, 6)
    scene = Scene(tmp_path, store, "table-kill-committed")
    COMMITS[store](tmp_path, 7)
    scene.sees("kill")
    report = scene.replays()

    assert scene.engine.story == ["freeze", "kill", "disarm", "restart"]
    assert (report.landed, report.healed, report.batch, report.replayed) == (True, True, 4, True)
    assert f"batch 4 was in the table as {NAMES[store]}, planned and not committed, when it died" in report.proof
    assert "batch 4 was committed with the same plan: it was replayed" in report.proof


@pytest.mark.parametrize("store", COMMITS)
def test_a_commit_without_rows_is_let_go(tmp_path, store):
    COMMITS[store](tmp_path, 6)
    scene = Scene(tmp_path, store, "table-kill-committed")
    COMMITS[store](tmp_path, 7, rows=False)
    scene.sees("thaw")
    scene.end()

    assert "kill" not in scene.engine.story
    assert "1 times the engine was frozen too late or for no rows" in scene.poll().proof


def test_a_batch_that_the_checkpoint_has_too_is_let_go(tmp_path):
    of_delta(tmp_path, 6)
    scene = Scene(tmp_path, "delta", "table-kill-committed")
    scene.engine.commits.add(4)
    of_delta(tmp_path, 7)
    scene.sees("thaw")
    scene.end()

    assert "kill" not in scene.engine.story


def test_a_folder_without_a_list_is_committed_when_spark_says_success(tmp_path):
    write(tmp_path / "_SUCCESS")
    scene = Scene(tmp_path, "parquet", "table-kill-committed")
    write(tmp_path / "_SUCCESS")
    scene.sees("kill")

    assert "batch 4 was in the table as _SUCCESS" in scene.replays().proof


@pytest.mark.parametrize(
    ("store", "place"), [("delta", ""), ("iceberg", "data"), ("parquet", "_temporary/0/task_1"), ("parquet", "listed")]
)
def test_a_file_that_is_written_and_not_committed_is_killed(tmp_path, store, place):
    if place == "listed":
        of_parquet(tmp_path, 6)
    elif store != "parquet":
        COMMITS[store](tmp_path, 6)
    write(tmp_path / "part-0.parquet", WHOLE)
    scene = Scene(tmp_path, store, "table-kill-written")
    write(tmp_path / place / "part-1.parquet", b"PAR1 rows")
    (tmp_path / place / "part-1.parquet").write_bytes(WHOLE)
    scene.sees("kill")
    report = scene.replays()

    assert report.landed
    assert "batch 4 was in the file part-1.parquet, while the table was still at" in report.proof


def test_half_a_file_is_not_written():
    assert not is_whole("/does/not/exist")


@pytest.mark.parametrize("store", LOGS)
def test_a_table_that_is_not_there_has_no_commit(tmp_path, store):
    assert LOGS[store](tmp_path / "none").newest() is None
    assert LOGS[store](tmp_path / "none").data_files() == set()


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"results": "sql:counts"}, "writes its results elsewhere"),
        ({"evidence": "none"}, "has no checkpoint that says which batch is open"),
        ({"resumes": False}, "does not resume after a kill"),
    ],
)
def test_a_run_that_can_t_have_one_says_why(changes, why):
    manifest = replace(MARKED, **{"results": "delta:counts", **changes})
    asked = replace(SPEC, sink="default", fault=parse("table-kill-written@now"))

    assert why in create(asked, manifest).needs[0]


def test_a_second_writer_commits_as_often_as_it_is_asked_to(tmp_path):
    of_delta(tmp_path, 0)
    asked = replace(SPEC, sink="default", fault=parse("table-writer(every=200ms)@now"))
    fault: Any = create(asked, replace(MARKED, results="delta:counts"))
    engine: Any = SimpleNamespace(starts=1)
    place: Any = SimpleNamespace(table=tmp_path)

    assert fault._strike.inject(Moment(1000, 1, engine, None, 1000, place)).endswith("every 200 ms")


def test_a_vacuum_has_landed_when_a_data_file_is_gone(monkeypatch):
    files = {"part-1", "part-2"}
    going: list[str] = []

    class DeltaTable:
        def __init__(self, folder: str) -> None: ...

        def vacuum(self, **_: object) -> None:
            files.difference_update(going)

    monkeypatch.setitem(sys.modules, "deltalake", SimpleNamespace(DeltaTable=DeltaTable))
    logs: Any = LOGS
    monkeypatch.setitem(logs, "delta", lambda _: SimpleNamespace(data_files=lambda: set(files)))
    vacuum = table.Vacuum("delta", "lite")
    assert vacuum.work(Path("counts")) == ""
    going.append("part-1")

    assert "part-1" in vacuum.work(Path("counts"))
    assert vacuum.work(Path("counts")) == ""
