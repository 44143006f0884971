"""Recounts of the parts of a log add up to the comparison of the whole, whatever is wrong with the log."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

from generators.schedule import Schedule
from harness.evidence.ledger import Ledger
from harness.evidence.observed import parts_of
from harness.judging import log_audit
from harness.judging.recounted import PartialRecount, Recounted, digest_of
from harness.kafka_log import recount
from tests.quick.judging.test_doubt import MARKED, MARKS, OTHER, RUN, SENT, TAPE, VIEWED, moved, spoilt, without
from tests.quick.workloads.test_oracle import EPOCH_MS, log_of
from workloads.base import COUNTS
from workloads.registry import oracle_of

SCHEDULE = Schedule(TAPE)
RIGHT = [*SENT, *MARKED]
LOGS = {
    "right": RIGHT,
    "lost": without(VIEWED, RIGHT),
    "doubled": [*RIGHT, SENT[VIEWED], SENT[VIEWED], MARKED[0]],
    "in another partition": [*without(VIEWED, RIGHT), (1 - SENT[VIEWED][0], *SENT[VIEWED][1:])],
    "foreign": [*RIGHT, (0, SENT[0][1], b"not a key")],
    "altered": moved(VIEWED, spoilt(OTHER, RIGHT)),
    "without sentinels": SENT,
    "empty": [],
}


def columns_of(log):
    return recount.joined([dict(part) for part in parts_of(log_of(TAPE, log))])


def by_judge(log) -> Recounted:
    audit, oracle = log_audit.compare(SCHEDULE, EPOCH_MS, log_of(TAPE, log), MARKS), oracle_of(RUN)
    columns = columns_of(log)
    counts = columns["kind"] == COUNTS
    places = oracle.places({name: column[counts] for name, column in columns.items()})
    return Recounted.of(audit, digest_of(Ledger.of(oracle.fold(places.cell, places.columns)), oracle))


def by_parts(log, cuts) -> Recounted:
    """Each part is recounted at another place, with codes of its own."""
    columns = columns_of(log)
    rows = np.array_split(np.arange(len(columns["event_id"])), cuts)
    whole, *others = [
        PartialRecount.of({name: column[own] for name, column in columns.items()}, SCHEDULE, EPOCH_MS, MARKS, oracle)
        for own in rows
        for oracle in [oracle_of(RUN)]
    ]
    for other in others:
        whole.merge(pickle.loads(pickle.dumps(other)))
    return whole.whole(SCHEDULE)


@pytest.mark.parametrize("what", LOGS)
@pytest.mark.parametrize("cuts", [1, 2, 7])
def test_parts_add_up_to_the_comparison_of_the_whole(what, cuts):
    assert by_parts(LOGS[what], cuts) == by_judge(LOGS[what])


def test_what_is_wrong_is_counted():
    right = by_parts(RIGHT, 3)

    assert right == Recounted(SCHEDULE.total + 2, SCHEDULE.total + 2, 0, 0, 0, 0, right.cells)
    assert by_parts(LOGS["in another partition"], 3) == right
    lost, doubled, altered = (by_parts(LOGS[what], 3) for what in ("lost", "doubled", "altered"))
    assert lost == replace(right, found=right.found - 1, missing=1, cells=lost.cells)
    assert doubled == replace(right, found=right.found + 3, doubled=3, cells=doubled.cells)
    assert altered == replace(right, altered=2, cells=altered.cells)
    assert len({right.cells, lost.cells, doubled.cells, altered.cells}) == 4
