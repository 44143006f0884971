"""Progress lines: torn, foreign and late ones cost only themselves."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.engines.progress import ProgressFile
from workloads.ad_impressions.jobs.progress_log import ProgressLog


def line(batch: int) -> bytes:
    return json.dumps({"at": batch, "batch": batch, "rows": 1, "offsets": {"0": batch + 1}}).encode() + b"\n"


def test_nothing_yet(tmp_path):
    progress = ProgressFile(tmp_path / "progress.jsonl")

    assert progress.newest() is None
    assert progress.notes() == ()


@given(cuts=st.lists(st.integers(0, 300), max_size=8))
def test_however_the_file_grows_the_newest_whole_line_counts(tmp_path_factory, cuts):
    path = tmp_path_factory.mktemp("progress") / "progress.jsonl"
    progress = ProgressFile(path)
    content = b"".join(line(batch) for batch in range(4))
    path.touch()
    written = 0
    for cut in [*sorted(cuts), len(content)]:
        with path.open("ab") as file:
            file.write(content[written:cut])
        written = max(written, min(cut, len(content)))
        whole = content[:written].count(b"\n")
        newest = progress.newest()
        assert (newest.batch if newest else -1) == whole - 1
    assert progress.notes() == ()


@pytest.mark.parametrize(
    "garbage",
    [b'{"at": 1, "batch": 9, "ro', b"\xff\xfe", b"[]", b"7", b'{"at": 1}', b'{"at":1,"batch":1,"rows":1,"offsets":[]}'],
)
def test_a_line_that_is_no_progress_is_counted_and_named(tmp_path, garbage):
    path = tmp_path / "progress.jsonl"
    path.write_bytes(line(1) + garbage + b"\n" + line(2))
    progress = ProgressFile(path)

    newest = progress.newest()

    assert newest is not None
    assert newest.batch == 2
    assert newest.offsets == {0: 3}
    [note] = progress.notes()
    assert "1 line of progress.jsonl" in note
    assert "line 2" in note


def test_a_job_that_was_killed_in_a_line_loses_only_that_line(tmp_path):
    path = tmp_path / "progress.jsonl"
    path.write_bytes(line(1) + b'{"at": 1, "bat')
    ProgressLog(str(path)).write(batch=2, rows=1, offsets={"0": 3})
    progress = ProgressFile(path)

    newest = progress.newest()

    assert newest is not None
    assert newest.batch == 2
    assert len(progress.notes()) == 1
