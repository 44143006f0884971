"""What tape and log disagree in, cell by cell: an engine is held to nothing of it, whichever of the two it has read."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from generators.disorder import PRESETS
from generators.encode import Encoder
from generators.profiles import steady
from generators.schedule import Schedule
from harness.evidence.observed import Doubt
from harness.judging import log_audit
from harness.judging.lateness import CountedLog
from harness.model import Batch, BatchLog, FaultSpec, RunSpec, TapeSpec
from tests.quick.workloads.test_oracle import EPOCH_MS, Sent, log_of, messages_of
from workloads.registry import codec_of, oracle_of
from workloads.sentinels import mark

TAPE = TapeSpec(5, steady(1000, 500), 2, 20, 2, 4, 4, PRESETS["none"])
RUN = RunSpec("by-hand", "fake", "absolute", TAPE, 10_000, 0, "none", None, FaultSpec("none"))
ORACLE = oracle_of(RUN)
MARKS = tuple(mark(p, 0, p, EPOCH_MS + 90_000, "closing") for p in range(2))
ENCODER = Encoder(codec_of(TAPE), EPOCH_MS)
SENT = messages_of(TAPE)
MARKED = [(each.partition, (sent := ENCODER.mark(each))["value"], sent["key"] or b"") for each in MARKS]
VIEWED = next(place for place, (_, value, _) in enumerate(SENT) if value and b'"view"' in value)
OTHER = next(place for place, (_, value, _) in enumerate(SENT) if value and b'"view"' not in value)

Log = list[Sent]


def doubt(log: Log, *, booked: bool = True) -> Doubt:
    every = lambda ids: np.full(len(ids), booked)  # noqa: E731
    return log_audit.doubt(Schedule(TAPE), EPOCH_MS, log_of(TAPE, log), MARKS, oracle=ORACLE, booked=every)


def without(place: int, log: Log) -> Log:
    return [*log[:place], *log[place + 1 :]]


def moved(place: int, log: Log, by_ms: int = 20_000) -> Log:
    """One of them, which says that it happened two windows later."""
    partition, value, key = log[place]
    assert value
    time = json.loads(value)["event_time"]
    return [
        *log[:place],
        (partition, value.replace(time.encode(), b"%d" % (int(time) + by_ms)), key),
        *log[place + 1 :],
    ]


def spoilt(place: int, log: Log) -> Log:
    partition, _, key = log[place]
    return [*log[:place], (partition, b"{", key), *log[place + 1 :]]


def foreign(log: Log) -> Log:
    return [*log, (0, SENT[VIEWED][1], b"not a key")]


LAST = len(SENT)  # the first of the marks


@pytest.mark.parametrize(
    ("change", "missing", "extra"),
    [
        (lambda log: log, 0, 0),
        (lambda log: without(VIEWED, log), 1, 0),
        (lambda log: without(OTHER, log), 0, 0),
        (lambda log: [*log, log[VIEWED]], 0, 1),
        (lambda log: [*log, log[OTHER]], 0, 0),
        (lambda log: moved(VIEWED, log), 1, 1),
        (lambda log: moved(OTHER, log), 0, 0),
        (lambda log: spoilt(VIEWED, log), 1, 0),
        (foreign, 0, 1),
        (lambda log: without(LAST, log), 1, 0),
        (lambda log: [*log, log[LAST]], 0, 1),
        (lambda log: moved(LAST, log), 1, 1),
        (lambda log: spoilt(LAST, log), 1, 0),
    ],
    ids=[
        "nothing",
        "lost",
        "lost, and no view",
        "twice",
        "twice, and no view",
        "altered",
        "altered, and no view",
        "torn",
        "foreign",
        "a mark lost",
        "a mark twice",
        "a mark altered",
        "a mark torn",
    ],
)
def test_each_record_in_doubt_counts_in_its_cell(change: Callable[[Log], Log], missing: int, extra: int):
    found = doubt(change([*SENT, *MARKED]))

    assert (found.missing.total, found.extra.total) == (missing, extra)


def test_a_record_that_was_altered_is_missed_where_it_was_sent_to_and_too_much_where_it_is():
    found = doubt(moved(VIEWED, [*SENT, *MARKED]))

    (missing,), (extra,) = found.missing, found.extra
    assert ORACLE.codes.key(missing) == ORACLE.codes.key(extra)
    assert ORACLE.codes.field(extra) - ORACLE.codes.field(missing) == 20_000
    value = SENT[VIEWED][1]
    assert value
    assert found.newest_ms == int(json.loads(value)["event_time"])


def test_what_never_left_was_read_by_nobody():
    log = without(VIEWED, [*SENT, *MARKED])

    assert not doubt(log, booked=False).missing
    assert doubt(without(LAST, log), booked=False).missing.total == 1, "marks are in no book"


def test_what_does_not_count_may_still_have_made_others_late():
    assert doubt(without(OTHER, [*SENT, *MARKED])).newest_ms is not None
    assert doubt([*SENT, *MARKED]).newest_ms is None


@pytest.mark.parametrize("complete", [True, False])
def test_a_log_of_batches_with_a_gap_says_of_no_event_that_it_was_dropped(complete):
    """All came in one batch behind everything that was late by the plan."""
    late = replace(RUN, tape=replace(TAPE, disorder=PRESETS["late"], profile=steady(1000, 3000)), window_ms=500)
    log = log_of(late.tape, messages_of(late.tape))
    behind_ms = EPOCH_MS + 3_000
    batches = BatchLog((Batch(0, {0: 9999, 1: 9999}, behind_ms),), drops_late=True, complete=complete)

    found = CountedLog(log, batches, late, oracle_of(late), codec_of(late.tape)).whole

    assert found.permitted.any()
    assert (found.exact, bool(found.dropped.any())) == (complete, complete)
