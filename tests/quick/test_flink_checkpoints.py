"""Where the Flink job goes on: the newest checkpoint that is complete, of whichever start."""

from __future__ import annotations

from workloads.ad_impressions.jobs.flink_checkpoints import newest_checkpoint


def checkpoint(folder, job, number, complete=True):
    place = folder / job / f"chk-{number}"
    place.mkdir(parents=True)
    (place / "data").touch()
    if complete:
        (place / "_metadata").touch()
    return place


def test_there_is_none_at_first(tmp_path):
    (tmp_path / "first" / "shared").mkdir(parents=True)

    assert newest_checkpoint(tmp_path) is None
    assert newest_checkpoint(tmp_path / "not there") is None


def test_numbers_count_and_not_names(tmp_path):
    checkpoint(tmp_path, "first", 9)
    newest = checkpoint(tmp_path, "first", 10)

    assert newest_checkpoint(tmp_path) == newest


def test_the_start_does_not_matter_and_what_is_half_written_does_not_count(tmp_path):
    newest = checkpoint(tmp_path, "a-second-start", 12)
    checkpoint(tmp_path, "the-first-start", 7)
    checkpoint(tmp_path, "a-third-start", 13, complete=False)

    assert newest_checkpoint(tmp_path) == newest
