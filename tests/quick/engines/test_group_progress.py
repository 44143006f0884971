"""What is made of a consumer group's committed offsets."""

from __future__ import annotations

from harness.engines.group_progress import Commits, GroupProgress
from harness.engines.progress import stored


def test_each_change_is_a_progress_and_nothing_else_is():
    commits = Commits()
    seen = [commits.progress(at, ends) for at, ends in enumerate([{0: 5}, {0: 5}, {0: 5, 1: 2}, {0: 9, 1: 2}])]

    assert [line and (line.at_ms, line.batch, line.rows, line.offsets) for line in seen] == [
        (0, 1, 0, {0: 5}),
        None,
        (2, 2, 0, {0: 5, 1: 2}),
        (3, 3, 0, {0: 9, 1: 2}),
    ]


def test_a_group_that_was_made_to_begin_at_the_beginning_has_done_nothing():
    commits = Commits()

    assert commits.progress(0, {0: 0, 1: 0}) is None
    assert commits.progress(1, {0: 1, 1: 0}) is not None


def test_offsets_that_went_back_are_told_too():
    commits = Commits()
    commits.progress(0, {0: 5})
    back = commits.progress(1, {0: 0})

    assert back is not None
    assert back.offsets == {0: 0}


def test_what_a_group_committed_is_written_as_engines_write_it_and_an_outage_is_no_line(tmp_path):
    answers = iter([{}, {0: 5}, {}, {0: 5}, {0: 7, 1: 1}])
    group = GroupProgress(lambda: next(answers), tmp_path / "progress.jsonl")
    for _ in range(5):
        group.poll()

    assert [line.offsets for line in stored(tmp_path / "progress.jsonl")] == [{0: 5}, {0: 7, 1: 1}]
