"""A copy of a Flink checkpoint: what it holds, and when there is none. And what a reader of states leaves."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from harness.engines.flink import kept_checkpoint
from harness.engines.process import columns_of
from harness.engines.spark.states import folder_of
from harness.model import Progress

TOLD = Progress(at_ms=5, batch=7, rows=9, offsets={1: 20, 0: 30}, watermark_ms=100)


def checkpoint(folder: Path, number: int) -> Path:
    complete = folder / "job" / f"chk-{number}"
    complete.mkdir(parents=True)
    (complete / "_metadata").write_bytes(b"m" * 10)
    (complete / "state").write_bytes(b"s" * 5)
    return complete


def test_a_copy_holds_all_of_a_checkpoint_and_what_its_job_told_of_it(tmp_path):
    live = tmp_path / "live"
    checkpoint(live, 6)
    checkpoint(live, 7)
    kept = kept_checkpoint.keep(live, 3, TOLD, tmp_path / "copies")
    shutil.rmtree(live)

    assert kept is not None
    assert (kept.number, kept.batch, kept.ends, kept.watermark_ms, kept.size_bytes) == (3, 7, (30, 20), 100, 15)
    copy = folder_of(tmp_path / "copies", 3, 7)
    assert sorted(path.name for path in copy.iterdir()) == ["_metadata", "state"]


def test_one_that_is_gone_or_not_complete_is_no_state(tmp_path):
    checkpoint(tmp_path / "live", 8)
    (tmp_path / "live" / "job" / "chk-7").mkdir()

    assert kept_checkpoint.keep(tmp_path / "live", 1, TOLD, tmp_path / "copies") is None
    assert not (tmp_path / "copies").exists()


def test_one_that_goes_in_the_middle_of_a_copy_leaves_nothing(tmp_path, monkeypatch):
    complete, copyfile = checkpoint(tmp_path / "live", 7), shutil.copyfile

    def removed(source, target):
        shutil.rmtree(complete)
        return copyfile(source, target)

    monkeypatch.setattr(shutil, "copyfile", removed)

    assert kept_checkpoint.keep(tmp_path / "live", 1, TOLD, tmp_path / "copies") is None
    assert not folder_of(tmp_path / "copies", 1, 7).exists()


ROWS = {"number": [1, 1], "key": ["a", "b"], "field": ["0", "10000"], "value": ["3", "4"]}


@pytest.mark.parametrize("kind", ["parquet", "lines"])
def test_a_reader_may_leave_parquet_or_lines(tmp_path, kind):
    table = tmp_path / "read"
    if kind == "parquet":
        table.mkdir()
        parquet.write_table(pa.table(ROWS), table / "part.parquet")
    else:
        rows = zip(*ROWS.values(), strict=True)
        table.write_text("".join(f'{{"number":{n},"key":"{k}","field":"{f}","value":"{v}"}}\n' for n, k, f, v in rows))

    assert columns_of(table) == ROWS


def test_states_without_a_cell_are_no_mistake(tmp_path):
    (tmp_path / "read").touch()

    assert columns_of(tmp_path / "read") == {"number": [], "key": [], "field": [], "value": []}
