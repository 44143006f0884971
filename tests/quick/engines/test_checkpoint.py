"""The reader of Spark's checkpoint, on folders made by hand as Spark makes them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.engines.spark import checkpoint


def offsets_file(watermark_ms: int, ends: dict[int, int]) -> str:
    metadata = {"batchWatermarkMs": watermark_ms, "batchTimestampMs": 1, "conf": {}}
    return f"v1\n{json.dumps(metadata)}\n{json.dumps({'topic': {str(p): end for p, end in ends.items()}})}"


def make(folder: Path, watermarks_ms: list[int], commits: int | None = None) -> Path:
    """Batch n ends at offset 10 * (n + 1); all are committed unless told otherwise."""
    for name in checkpoint.FOLDERS:
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "metadata").write_text('{"id":"x"}')
    (folder / "sources" / "0" / "0").write_bytes(b'\x00v1\n{"topic":{"0":0}}')
    for batch, watermark_ms in enumerate(watermarks_ms):
        (folder / "offsets" / str(batch)).write_text(offsets_file(watermark_ms, {0: 10 * (batch + 1)}))
    for batch in range(len(watermarks_ms) if commits is None else commits):
        (folder / "commits" / str(batch)).write_text('v1\n{"nextBatchWatermarkMs":0}')
    return folder


def test_a_batch_drops_by_the_watermark_of_the_batch_before_it(tmp_path):
    log = checkpoint.read(make(tmp_path, [0, 100, 200]), drops_late=True)

    assert [batch.drop_watermark_ms for batch in log.batches] == [0, 0, 100]
    assert [dict(batch.ends) for batch in log.batches] == [{0: 10}, {0: 20}, {0: 30}]
    assert log.complete
    assert log.drops_late


def test_with_the_flag_off_it_is_its_own_watermark(tmp_path):
    log = checkpoint.read(make(tmp_path, [0, 100, 200]), drops_late=True, allow_multiple=False)

    assert [batch.drop_watermark_ms for batch in log.batches] == [0, 100, 200]


def test_a_query_that_keeps_all_drops_nothing(tmp_path):
    log = checkpoint.read(make(tmp_path, [0, 100, 200]), drops_late=False)

    assert {batch.drop_watermark_ms for batch in log.batches} == {0}


def test_the_newest_batch_may_be_open(tmp_path):
    folder = make(tmp_path, [0, 0, 0], commits=2)

    log = checkpoint.read(folder, drops_late=True)

    assert log.complete
    assert [batch.committed for batch in log.batches] == [True, True, False]
    assert checkpoint.open_batches(folder) == {2}


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("offsets/1", None, "Missing offsets: 1."),
        ("commits/1", None, "Missing commits: 1."),
        ("offsets/2", None, "Commits without offsets: 2."),
        ("offsets/1", "", "offsets/1 can't be used: its version"),
        ("offsets/1", "v2\n{}\n{}", "version is 'v2'"),
        ("offsets/1", "v1\n{", "0 sources"),
        ("offsets/1", offsets_file(0, {}) + "\n{}", "2 sources"),
        ("offsets/1", "v1\n{}\n{", "offsets/1 can't be used: Expecting"),
        ("offsets/1", "v1\n{}\n{}", "one topic's offsets and a batchWatermarkMs"),
    ],
)
def test_what_is_missing_or_broken_is_named(tmp_path, file, content, said):
    path = make(tmp_path, [0, 0, 0]) / file
    path.unlink()
    if content is not None:
        path.write_text(content)

    log = checkpoint.read(tmp_path, drops_late=True)

    assert not log.complete
    assert said in log.note


def test_what_is_wrong_with_all_batches_is_named_once(tmp_path):
    folder = make(tmp_path, [0] * 8)
    for batch in range(8):
        (folder / "offsets" / str(batch)).write_text(offsets_file(0, {}) + "\n{}")

    log = checkpoint.read(folder, drops_late=True)

    assert log.note.startswith("offsets/0, 1, 2, 3, 4 and 3 more can't be used: it has 2 sources")
    assert log.note.count("can't be used") == 1
    assert "missing" not in log.note


def test_no_batch_at_all_is_not_complete(tmp_path):
    assert not checkpoint.read(tmp_path, drops_late=True).complete


def test_files_that_are_not_batches_are_passed_over(tmp_path):
    folder = make(tmp_path, [0, 0])
    for name in (".1.crc", ".2.tmp", "2.compact", ".2.3f.tmp"):
        (folder / "offsets" / name).write_text("x")

    assert len(checkpoint.read(folder, drops_late=True).batches) == 2


def test_copies_outlive_a_purge(tmp_path):
    live, copy = make(tmp_path / "live", [0, 100]), tmp_path / "copy"
    checkpoint.collect(live, copy)
    (live / "offsets" / "0").unlink()
    (live / "commits" / "0").unlink()
    (live / "offsets" / "2").write_text(offsets_file(300, {0: 99}))
    checkpoint.collect(live, copy)

    log = checkpoint.read(copy, drops_late=True)

    assert [batch.batch for batch in log.batches] == [0, 1, 2]
    assert log.complete
    assert (copy / "metadata").exists()
    assert (copy / "sources" / "0" / "0").exists()
    assert not list(copy.rglob("*.tmp"))


def test_a_torn_file_waits_until_it_is_whole(tmp_path):
    live, copy = make(tmp_path / "live", [0]), tmp_path / "copy"
    whole = offsets_file(5, {0: 20})
    (live / "offsets" / "1").write_text(whole[:-9])
    checkpoint.collect(live, copy)
    assert not (copy / "offsets" / "1").exists()

    (live / "offsets" / "1").write_text(whole)
    checkpoint.collect(live, copy)

    assert (copy / "offsets" / "1").read_text() == whole


def test_a_batch_that_was_planned_anew_is_copied_anew(tmp_path):
    live, copy = make(tmp_path / "live", [0, 0]), tmp_path / "copy"
    checkpoint.collect(live, copy)
    anew = live / "offsets" / "1.new"
    anew.write_text(offsets_file(0, {0: 77}))
    anew.replace(live / "offsets" / "1")

    checkpoint.collect(live, copy)

    assert checkpoint.planned(copy, 1) == checkpoint.planned(live, 1)


def test_the_newest_commit_proves_progress_that_no_line_tells(tmp_path):
    assert checkpoint.newest_committed(tmp_path) is None

    folder = make(tmp_path, [0, 0, 0], commits=2)
    assert checkpoint.newest_committed(folder) == (1, {0: 20})

    (folder / "commits" / "0").unlink()  # Spark purges the old ones
    assert checkpoint.newest_committed(folder, since=1) == (1, {0: 20})

    (folder / "offsets" / "1").write_text("v1\n{")
    assert checkpoint.newest_committed(folder, since=1) is None


def test_what_a_crash_cut_off_in_real_time_mode_may_have_held_all_that_came_after_the_last_commit(tmp_path):
    run = checkpoint.cut_off(make(tmp_path, [0, 100, 200], commits=2), start=2, partitions=2)

    assert (run.start, run.batch, run.committed) == (2, 2, False)
    assert dict(run.starts) == {0: 20, 1: 0}
    assert run.ends == {0: checkpoint.FAR, 1: checkpoint.FAR}
    assert run.drop_watermark_ms == 100


def test_before_its_first_commit_a_crash_cuts_off_everything(tmp_path):
    run = checkpoint.cut_off(tmp_path, start=2, partitions=2)

    assert (run.batch, dict(run.starts), run.drop_watermark_ms) == (0, {0: 0, 1: 0}, 0)


def test_the_seam_lies_behind_the_newest_commit_and_the_newest_plan(tmp_path):
    assert checkpoint.restart_offsets(make(tmp_path / "open", [0, 0, 0], commits=2)) == ((20,), (30,))
    assert checkpoint.restart_offsets(make(tmp_path / "done", [0, 0, 0])) == ((30,), (30,))
    assert checkpoint.restart_offsets(tmp_path / "nothing") == ((), ())
    torn = make(tmp_path / "torn", [0, 0])
    (torn / "offsets" / "1").write_text("v1")
    assert checkpoint.restart_offsets(torn) == ((), ())
