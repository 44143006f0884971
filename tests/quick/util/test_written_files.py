"""Bytes that were written to a folder count once each, whatever is deleted, renamed or written anew."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import pytest

from harness.metering import allocated_bytes
from harness.metering.counted_work import CountedWork
from harness.metering.written_files import WrittenFiles, added_bytes
from harness.model import HarnessError
from harness.util import file_tree
from harness.util.file_tree import Seen, files


def seen(size: int, path: str = "offsets/7", changed_ns: int = 1) -> Seen:
    return Seen((1, 4711), path, changed_ns, size)


@pytest.fixture
def written():
    return WrittenFiles()


def write(path: Path, size: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size)


def test_a_file_that_was_deleted_between_two_looks_keeps_counting(tmp_path, written):
    write(tmp_path / "state/0/0/1.delta", 100)
    assert written.total_bytes(tmp_path) == 100
    (tmp_path / "state/0/0/1.delta").unlink()
    write(tmp_path / "state/0/0/2.delta", 7)

    assert written.total_bytes(tmp_path) == 107
    assert written.total_bytes(tmp_path) == 107, "nothing was written since"


def test_a_file_that_is_replaced_by_one_of_its_name_counts_whole(tmp_path, written):
    write(tmp_path / "metadata", 100)
    written.total_bytes(tmp_path)
    write(tmp_path / ".metadata.tmp", 30)
    (tmp_path / ".metadata.tmp").replace(tmp_path / "metadata")

    assert written.total_bytes(tmp_path) == 130


def test_a_file_that_is_renamed_counts_once(tmp_path, written):
    write(tmp_path / ".7.delta.tmp", 100)
    written.total_bytes(tmp_path)
    (tmp_path / ".7.delta.tmp").rename(tmp_path / "7.delta")

    assert written.total_bytes(tmp_path) == 100


def test_a_file_that_two_paths_lead_to_counts_once(tmp_path, written):
    write(tmp_path / "000012.sst", 100)
    os.link(tmp_path / "000012.sst", tmp_path / "shared.sst")

    assert written.total_bytes(tmp_path) == 100


@pytest.mark.parametrize(
    ("now", "added"),
    [
        pytest.param(seen(100), 0, id="as it was"),
        pytest.param(seen(130, changed_ns=2), 30, id="appended to"),
        pytest.param(seen(100, changed_ns=2), 100, id="written anew, as long as before"),
        pytest.param(seen(20, changed_ns=2), 20, id="written anew, and shorter"),
        pytest.param(seen(100, "offsets/8"), 0, id="renamed"),
        pytest.param(seen(130, "offsets/8", 2), 130, id="another one with the inode of one that was deleted"),
    ],
)
def test_of_a_file_that_was_seen_before_only_what_is_new_counts(now, added):
    assert added_bytes(seen(100), now) == added


def test_a_file_that_vanishes_while_it_is_looked_at_hides_none_behind_it(tmp_path, written, monkeypatch):
    for number in range(3):
        write(tmp_path / f"offsets/{number}", 10)
    look, purged = file_tree._seen, list[str]()

    def purge_the_first(entry):
        if not purged:
            purged.append(entry.path)
            Path(entry.path).unlink()
        return look(entry)

    monkeypatch.setattr(file_tree, "_seen", purge_the_first)
    assert written.total_bytes(tmp_path) == 20


def test_a_folder_that_vanishes_while_it_is_looked_at_ends_no_look(tmp_path):
    write(tmp_path / "metadata", 10)
    write(tmp_path / "chk-1/_metadata", 20)
    looked = files(tmp_path)
    found = [next(looked)]
    (tmp_path / "chk-1/_metadata").unlink()
    (tmp_path / "chk-1").rmdir()

    assert [Path(each.path).name for each in (*found, *looked)] == ["metadata"]


def test_where_there_is_no_folder_nothing_is_told_and_nothing_is_forgotten(tmp_path, written):
    assert written.total_bytes(None) is None
    assert written.total_bytes(tmp_path / "checkpoint") is None
    write(tmp_path / "checkpoint/metadata", 10)
    assert written.total_bytes(tmp_path / "checkpoint") == 10
    (tmp_path / "checkpoint").rename(tmp_path / "older")
    assert written.total_bytes(tmp_path / "checkpoint") is None
    write(tmp_path / "checkpoint/metadata", 5)
    assert written.total_bytes(tmp_path / "checkpoint") == 15


def test_counted_work_looks_where_the_checkpoint_is_now(tmp_path, monkeypatch):
    def refuse():
        raise HarnessError("no compiler")

    monkeypatch.setattr(allocated_bytes, "agent", refuse)
    folders = iter([None, tmp_path])
    write(tmp_path / "commits/0", 29)
    with closing(CountedWork(None, checkpoint=lambda: next(folders))) as work:
        assert [work.read([], []).checkpoint_bytes for _ in range(2)] == [None, 29]
