"""Which events may be late, which were dropped, which batch took them: against rules written the slow way."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from harness.evidence.observed import NO_BATCH, LogEvents
from harness.judging.lateness import CountedLog, Newest, batch_of, dropped, never_closed
from harness.model import INDEX_BITS, MARK_SERVER, Batch, BatchLog, EarlierRun
from tests.quick.cases import EPOCH_MS, events

WINDOW, WATERMARK = 1000, 2000


def log(partitions: list[list[int]]) -> LogEvents:
    """Event times per partition, offsets from 0."""
    rows = [(p, o, t) for p, times in enumerate(partitions) for o, t in enumerate(times)]
    time_ms = np.array([t for _, _, t in rows], dtype=np.int64)
    begins_ms = time_ms // WINDOW * WINDOW
    return LogEvents(
        np.array([p for p, _, _ in rows], dtype=np.int16),
        np.array([o for _, o, _ in rows], dtype=np.int64),
        np.arange(len(rows), dtype=np.int64),
        time_ms,
        begins_ms,
        begins_ms + WINDOW,
    )


def permitted(events: LogEvents, watermark: int) -> NDArray[np.bool_]:
    """Whatever parts it is read in."""
    newest, half = Newest(), len(events) // 2
    parts = [
        (events.partition[rows], events.id[rows], events.time_ms[rows]) for rows in (slice(half), slice(half, None))
    ]
    before_ms = np.concatenate([newest.read(*part) for part in parts])
    newest.read_elsewhere(events.partition, before_ms, None)
    return np.asarray(before_ms - watermark >= events.closes_ms)


TIMES = st.lists(st.lists(st.integers(0, 9000), min_size=1, max_size=12), min_size=1, max_size=3)


@given(TIMES, st.sampled_from([0, WATERMARK]))
def test_permitted_is_any_event_that_some_order_of_reading_makes_late(partitions, watermark):
    events = log(partitions)
    mask = permitted(events, watermark)

    for row in range(len(events)):
        mine = events.partition == events.partition[row]
        before = events.time_ms[~mine | (events.offset <= events.offset[row])]
        end = events.time_ms[row] // WINDOW * WINDOW + WINDOW
        assert mask[row] == (before.max() - watermark >= end)


@given(TIMES, st.sampled_from([0, WATERMARK]), st.randoms(use_true_random=False))
def test_what_an_engine_of_that_grace_drops_was_permitted_however_it_reads_the_partitions(partitions, grace, dice):
    events = log(partitions)
    mask = permitted(events, grace)
    rows = [list(np.flatnonzero(events.partition == p)) for p in range(len(partitions))]
    newest = 0

    while left := [each for each in rows if each]:
        row = dice.choice(left).pop(0)
        newest = max(newest, int(events.time_ms[row]))
        if (events.time_ms[row] // WINDOW + 1) * WINDOW <= newest - grace:
            assert mask[row]


def test_our_own_marks_make_nothing_late():
    events = log([[100, 50_000], [200]])
    events.id[1] = MARK_SERVER << INDEX_BITS

    assert permitted(events, WATERMARK).tolist() == [False, False, False]


@given(TIMES, st.data())
def test_batches_partition_the_log_and_drop_by_their_own_watermark(partitions, data):
    events = log(partitions)
    cuts = data.draw(
        st.lists(st.lists(st.integers(0, 12), min_size=len(partitions), max_size=len(partitions)), max_size=4)
    )
    ends = np.maximum.accumulate(np.array([*cuts], dtype=np.int64).reshape(-1, len(partitions)), axis=0)
    marks = data.draw(st.lists(st.integers(0, 9000), min_size=len(ends), max_size=len(ends)))
    batches = tuple(Batch(n, dict(enumerate(row.tolist())), marks[n]) for n, row in enumerate(ends))
    evidence = BatchLog(batches, drops_late=True, complete=True)

    taken = batch_of(events, evidence)
    gone = dropped(events, taken, evidence)

    for row in range(len(events)):
        p, offset = int(events.partition[row]), int(events.offset[row])
        right = next((b.batch for b in batches if b.ends[p] > offset), NO_BATCH)
        assert taken[row] == right
        end = events.time_ms[row] // WINDOW * WINDOW + WINDOW
        assert gone[row] == (right != NO_BATCH and end <= marks[right])


def test_an_engine_that_keeps_late_events_dropped_none():
    events = log([[100, 9000, 100]])
    evidence = BatchLog((Batch(0, {0: 3}, 5000),), drops_late=False, complete=True)

    assert not dropped(events, batch_of(events, evidence), evidence).any()


def test_a_window_is_open_until_the_newest_event_less_the_lateness_has_passed_its_end():
    log = events()  # for 30 s, in windows of 10 s

    newest_ms = int(log.time_ms.max())
    assert (never_closed(log, newest_ms, 0) == (log.time_ms >= EPOCH_MS + 20_000)).all()
    assert (never_closed(log, newest_ms, 10_000) == (log.time_ms >= EPOCH_MS + 10_000)).all()


def test_an_event_that_a_batch_dropped_may_have_been_counted_by_its_forgotten_run():
    """The forgotten run had the first two events, and a watermark that had passed the window of the first alone."""
    events = log([[500, 1500, 1600]])
    forgotten = EarlierRun(1, 0, {0: 0}, {0: 2}, 1000, committed=True)
    evidence = BatchLog((Batch(0, {0: 3}, 5000),), drops_late=True, complete=True, earlier=(forgotten,))
    known: Any = CountedLog._known
    asked = SimpleNamespace(_batch_log=evidence, exact=True, _named=None, _again=None)
    found = known(asked, events, np.ones(len(events), dtype=np.bool_))

    assert found.dropped.tolist() == [True, True, True]
    assert found.counted_before.tolist() == [False, True, False]
