"""Progress lines: torn, foreign and late ones cost only themselves."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.engines.progress import OF_STATE, ProgressFile
from harness.judging import progress_curve
from harness.judging.progress_curve import Curve
from harness.model import Progress
from harness.rundir.store import Store
from workloads.jobs.progress_log import ProgressLog


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


def odd(**changes: str) -> bytes:
    """A line with other JSON in some places."""
    values = {"at": "1", "batch": "1", "rows": "1", "offsets": '{"0": 1}', **changes}
    return "{{{}}}".format(", ".join(f'"{key}": {value}' for key, value in values.items())).encode()


GARBAGE = [
    b'{"at": 1, "batch": 9, "ro',
    b"\xff\xfe",
    b"[]",
    b"7",
    b'{"at": 1}',
    b"[" * 200_000,
    b'{"at":' * 200_000,
    odd(offsets="[]"),
    odd(offsets='{"0": "five"}'),
    odd(offsets='{"0": null}'),
    odd(offsets='{"zero": 1}'),
    odd(offsets='{"0": [1]}'),
    *(odd(restored=value) for value in ("[]", '{"0": null}', '"5"')),
    *(odd(end_ms=value) for value in ("7", "[1]", "[0, 1, 1]", "[1, 0]", "[0, 2]", "[-1, 1]", '["soon", 1]')),
    *(
        odd(**{key: value})
        for key in ("at", "batch", "rows", "took_ms", "watermark_ms", "dropped", "end_ms", *OF_STATE)
        for value in ("Infinity", "-Infinity", "NaN", "9" * 400, "1e30", "1e999", "true", '"soon"', '"1e3"', "[]", "{}")
    ),
]


def test_a_line_that_is_no_progress_is_counted_and_named(tmp_path):
    path = tmp_path / "progress.jsonl"
    for garbage in GARBAGE:
        path.write_bytes(line(1) + garbage + b"\n" + line(2))
        progress = ProgressFile(path)

        newest = progress.newest()

        assert newest is not None, garbage[:80]
        assert newest.batch == 2, garbage[:80]
        assert newest.offsets == {0: 3}, garbage[:80]
        [note] = progress.notes()
        assert "1 line of progress.jsonl" in note, garbage[:80]
        assert "line 2" in note, garbage[:80]


def test_a_job_that_was_killed_in_a_line_loses_only_that_line(tmp_path):
    path = tmp_path / "progress.jsonl"
    path.write_bytes(line(1) + b'{"at": 1, "bat')
    ProgressLog(str(path)).write(batch=2, rows=1, offsets={"0": 3})
    progress = ProgressFile(path)

    newest = progress.newest()

    assert newest is not None
    assert newest.batch == 2
    assert len(progress.notes()) == 1


def written(folder: Path, content: bytes) -> Store:
    (folder / "progress.jsonl").write_bytes(content)
    return Store(folder)


def test_a_line_that_does_not_count_while_the_run_goes_on_does_not_count_afterwards(tmp_path):
    for garbage in GARBAGE:
        store = written(tmp_path, line(1) + garbage + b"\n" + line(2))

        assert [each.batch for each in progress_curve.read_progress(store)] == [1, 2], garbage[:80]


def test_numbers_in_quotes_are_numbers_before_and_after(tmp_path):
    quoted = odd(at='"7"', offsets='{"0": "12"}', took_ms='"250"', watermark_ms='"-3"', rows="2.0", end_ms='["5", 6.0]')
    store = written(tmp_path, quoted + b"\n")

    newest = ProgressFile(store.path / "progress.jsonl").newest()

    assert newest == Progress(7, 1, 2, {0: 12}, watermark_ms=-3, took_ms=250, end_ms=(5, 6))
    assert progress_curve.read_progress(store) == (newest,)
    curve = progress_curve.by_progress([newest], epoch_ms=0, opening=2)
    assert curve is not None
    assert curve.total.tolist() == [10.0]


@pytest.mark.parametrize("where", ["nowhere", "folder"])
def test_progress_that_is_no_file_is_none(tmp_path, where):
    if where == "folder":
        (tmp_path / "progress.jsonl").mkdir()

    assert ProgressFile(tmp_path / "progress.jsonl").newest() is None
    assert progress_curve.read_progress(Store(tmp_path)) == ()


def test_only_the_moments_of_the_run_are_measured_by(tmp_path):
    lines = b"".join(odd(at=str(at), batch=str(at)) + b"\n" for at in (0, -5, 1_763, 1_763_000, 1_764_000, 1 << 62))
    store = written(tmp_path, lines)
    store.tell("begin", at_ms=1_763_000)
    store.tell("closed", at_ms=1_765_000)

    assert [each.at_ms for each in progress_curve.progress_lines(store)] == [1_763_000, 1_764_000]
    assert len(progress_curve.read_progress(store)) == 6


def test_what_a_start_has_restored_is_known_until_the_next_one_begins(tmp_path):
    path = tmp_path / "progress.jsonl"
    path.write_bytes(line(1))
    progress = ProgressFile(path)
    assert progress.restored() == {}

    path.write_bytes(path.read_bytes() + odd(restored='{"0": 2, "1": 3}') + b"\n" + line(3))
    assert progress.restored() == {0: 2, 1: 3}

    path.write_bytes(path.read_bytes() + odd(restored='{"0": 4}') + b"\n")
    progress.begin()
    assert progress.restored() == {}
    path.write_bytes(path.read_bytes() + line(5))
    assert progress.restored() == {}


@pytest.mark.parametrize(
    ("written", "number"),
    [(None, 0), ("", 0), ('{"batch": 4, "rows": 1}\n', 5), ('{"batch": 4, "rows": 1}\n{"batch": 5, "ro', 5)],
)
def test_a_job_that_keeps_nothing_else_goes_on_with_the_number_behind_its_newest_whole_line(tmp_path, written, number):
    path = tmp_path / "progress.jsonl"
    if written is not None:
        path.write_text(written, encoding="utf-8")

    assert ProgressLog(str(path)).next_batch() == number


def test_a_batch_takes_as_long_as_the_engine_says_and_two_seconds_if_it_says_nothing():
    lines = [Progress(at, at, 1, {0: at}, took_ms=took_ms) for at, took_ms in ((1, 1500), (2, None), (3, -7))]
    curve = progress_curve.by_progress(lines, epoch_ms=0, opening=0)

    assert curve is not None
    assert curve.took_s.tolist() == [1.5, 2.0, 0.0]


def curve(at_s: list[float], total: list[float]) -> Curve:
    return Curve(np.array(at_s), np.array(total), np.zeros(len(at_s)))


def test_the_rate_of_catching_up_is_the_highest_that_lasted_while_records_were_waiting():
    backlog, nothing = curve([0.0, 10.0], [1000.0, 2000.0]), curve([0.0, 10.0], [0.0, 1000.0])
    fast, slow = curve([0.0, 2.0, 4.0, 6.0], [0.0, 400.0, 800.0, 1000.0]), curve([0.0, 2.0, 4.0], [0.0, 150.0, 300.0])

    assert progress_curve.catch_up_per_s(fast, backlog) == 200.0
    assert progress_curve.catch_up_per_s(fast, nothing) is None, "nothing was waiting"
    assert progress_curve.catch_up_per_s(slow, backlog) is None, "100 a second are offered"


def test_counts_that_grow_in_the_results_are_a_curve_of_records():
    """Two keys of one window: the first shows 1 and then 3, the second shows 2 in between."""
    samples = pa.table(
        {"campaign": [0, 1, 0], "window_ms": [0, 0, 0], "at_us": [1_000_000, 2_000_000, 3_000_000], "count": [1, 2, 3]}
    )
    found = progress_curve.by_results(samples, 0, 50.0)

    assert found
    assert (found.at_s.tolist(), found.total.tolist()) == ([1.0, 2.0, 3.0], [10.0, 30.0, 50.0])


def test_results_that_change_much_more_often_than_commits_and_before_them_were_not_written_by_them():
    at_s = np.arange(0.5, 10.5, 0.5)

    def curve(at_s: np.ndarray, total: np.ndarray) -> Curve:
        return Curve(at_s, total, np.zeros(len(at_s)))

    commits = curve(np.array([5.0, 10.0]), np.array([500.0, 1000.0]))
    often = curve(at_s[:10], np.full(10, 100.0) * at_s[:10])
    assert progress_curve.seen_before_told(commits, often)
    assert not progress_curve.seen_before_told(curve(at_s, 100.0 * at_s), often)  # a commit for each change
    assert not progress_curve.seen_before_told(commits, curve(at_s + 5.0, 50.0 * at_s))  # what was told before
    assert not progress_curve.seen_before_told(commits, curve(at_s[:6], 100.0 * at_s[:6]))  # too seldom


def test_the_times_of_a_run_are_unknown_if_its_begin_or_its_end_is(tmp_path):
    begun, ended, both = (Store.create(tmp_path, name) for name in ("begun", "ended", "both"))
    for store in (begun, both):
        store.tell("begin")
    for store in (ended, both):
        store.tell("engine")

    assert progress_curve.span_ms(begun) is None
    assert progress_curve.span_ms(ended) is None
    span = progress_curve.span_ms(both)
    assert span
    assert span[0] < span[1]


def test_the_value_of_each_moment_is_the_newest_one_that_was_known():
    known = progress_curve.last_known(np.array([1.0, 3.0]), np.array([10.0, 30.0]), np.array([0.9, 1.0, 2.0, 3.0, 9.0]))

    assert np.isnan(known[0])
    assert known[1:].tolist() == [10.0, 10.0, 30.0, 30.0]
    assert progress_curve.last_known(np.empty(0), np.empty(0), np.zeros(2), 5.0).tolist() == [5.0, 5.0]
