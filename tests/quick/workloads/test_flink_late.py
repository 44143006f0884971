"""How the files of what Flink dropped as late become lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from workloads.jobs.flink_late import LateLog, is_named, parts_folder


def config(folder: Path, **options: str):
    return {"progress_path": str(folder / "progress.jsonl"), "options": options}


def lines(folder: Path) -> list[str]:
    return (folder / "late.jsonl").read_text().split()


def test_what_flink_has_closed_is_taken_once_and_what_it_still_writes_is_left(tmp_path):
    written = config(tmp_path)
    log, parts = LateLog(written), parts_folder(written)
    log.take()
    assert lines(tmp_path) == []

    parts.mkdir()
    (parts / "part-a-0-0").write_text("0,5\n3,700\n")
    (parts / ".part-a-1-0.inprogress.b").write_text("1,6\n")
    log.take()
    log.take()
    assert lines(tmp_path) == ["[0,5]", "[3,700]"]

    (parts / ".part-a-1-0.inprogress.b").rename(parts / "part-a-1-0")
    LateLog(written).take()
    assert lines(tmp_path) == ["[0,5]", "[3,700]", "[1,6]"]
    assert not list(parts.iterdir())


def test_only_who_is_asked_names_them(tmp_path):
    assert not is_named(config(tmp_path))
    assert is_named(config(tmp_path, **{"streamgauge.late": "named"}))
    with pytest.raises(SystemExit, match="the only value is 'named'"):
        is_named(config(tmp_path, **{"streamgauge.late": "yes"}))
