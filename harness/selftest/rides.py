"""Planted mistakes of a question with a count, a maximum and a distinct count, in sliding windows.

It is the question of examples/rides, with few cities. A mistake is made in the events, as by a job, and the results are
folded from them. Each verdict must name the cause.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from harness.evidence.ledger import Expectation, Ledger
from harness.evidence.observed import LogEvents, Observed, Watched, folded
from harness.judging import times
from harness.judging.checks.case import RunFacts
from harness.selftest.by_hand import EPOCH_MS, judged
from harness.selftest.declared import EVENTS, EVERY_MS, Events, events, honest_run, in_cells, of_question, once
from workloads.base import Kind
from workloads.declared.codec import column_of

STEP_MS = 10_000
DECLARED = """
id = "rides"
asks = "rides of each city, the largest fare and how many drivers, over 30 seconds, every 10 seconds"

[event.fields]
city = { kind = "choice", values = ["bonn", "oslo"] }
driver = { kind = "integer", from = 1, to = 60 }
fare = { kind = "integer", from = 300, to = 25_000 }
state = { kind = "choice", values = ["finished", "started"], weights = [9, 1] }
ended_at = { kind = "time" }

[oracle]
keys = ["city", "opens"]
step_ms = 10_000
cells = '''
SELECT event, city, unnest(sliding(ended_at, 30000, 10000)) AS opens, opens + 30000 AS closes, fare, driver FROM events
WHERE state = 'finished'
'''
fold = '''
SELECT city, opens, count(*) AS trips, max(fare) AS largest, count(DISTINCT driver) AS drivers
FROM cells GROUP BY city, opens
'''

[oracle.values]
trips = "count"
largest = "monotone"
drivers = "monotone"
"""
ASKED = of_question("rides", json.dumps({"text": DECLARED, "schema": None}))
TRIPS, LARGEST, DRIVERS = range(3)
STATE, FINISHED = column_of("state"), 0
LATE_MS, EACH_LATE = 4_000, 9


@once
def planted() -> Iterator[tuple[str, RunFacts]]:
    honest, sent = honest_run(ASKED), events(ASKED.tape)
    oracle, log, right = honest.oracle, honest.events, honest.log_ledger
    all_rows = np.arange(EVENTS)

    def showing(counts: Ledger) -> RunFacts:
        return replace(honest, observed=Observed(counts, ()))

    def of(rows: NDArray[np.intp]) -> LogEvents:
        return in_cells({name: column[rows] for name, column in sent.items()}, oracle)

    def only(number: int, values: Ledger) -> Ledger:
        """Return right counts but for one of the values."""
        kept = {cell: each for cell, each in right.items() if _number(honest, cell) != number}
        return Ledger({**kept, **{cell: each for cell, each in values.items() if _number(honest, cell) == number}})

    yield "rides, all of them right", honest
    yield "rides in the newest of their windows only", showing(folded(oracle, log, _newest(log)))
    yield "rides in windows that are named one step late", showing(_later(right, STEP_MS, honest))
    yield "rides in windows that are named one step early", showing(_later(right, -STEP_MS, honest))
    yield "rides in windows that are named by their end", showing(_later(right, 3 * STEP_MS, honest))
    one = int(np.flatnonzero(sent[STATE] == FINISHED)[EVENTS // 3])
    yield "a ride lost", showing(folded(oracle, of(np.delete(all_rows, one))))
    yield "a ride twice", showing(right + honest.only(folded(oracle, of(np.array([one]))), {Kind.COUNT}))
    finished = {**sent, STATE: np.full_like(sent[STATE], FINISHED)}
    yield "rides that have only started", showing(folded(oracle, in_cells(finished, oracle)))
    as_trips = {honest.beside(cell, DRIVERS): n for cell, n in right.items() if _number(honest, cell) == TRIPS}
    yield "all rides for drivers", showing(only(DRIVERS, Ledger(as_trips)))
    yield "the first fare and not the largest", showing(only(LARGEST, _first_fares(honest)))
    largest = max(cell for cell in right if _number(honest, cell) == LARGEST)
    yield "a largest fare that nobody paid", showing(right + Ledger({largest: 7_916}))
    drivers = honest.beside(largest, DRIVERS)
    yield (
        "a fare too large by much, and drivers by a larger share",
        showing(right + Ledger({largest: 5_000, drivers: 60})),
    )
    yield from _dropped_by_their_own_time(honest, sent)
    for name, cell in (("a largest fare", largest), ("a number of drivers", drivers)):
        yield f"{name} that is far too large for a while", _seen(honest, (2.0, cell, 25_500), (2.4, cell, right[cell]))
    yield "a largest fare that falls for a while", _seen(honest, (2.0, largest, 1), (2.4, largest, right[largest]))


def _seen(honest: RunFacts, *others: tuple[float, int, int]) -> RunFacts:
    """Return polls of all cells with their final counts, a second after their last event, then some other counts."""
    end_ms = int(honest.sent_us.max()) // 1000
    rows = [(1.0, cell, count) for cell, count in honest.log_ledger.items()] + list(others)
    at_s, cells, counts = zip(*rows, strict=True)
    at_us = np.array([(end_ms + round(each * 1000)) * 1000 for each in at_s], dtype=np.int64)
    cell, count = (np.array(column, dtype=np.int64) for column in (cells, counts))
    return replace(honest, watched=Watched(at_us, cell, count, longest_gap_ms=50.0), told=())


def _number(case: RunFacts, cell: int) -> int:
    return case.oracle.codes.key(cell) // case.oracle.groups


def _newest(log: LogEvents) -> NDArray[np.bool_]:
    """Select the rows of the last window of each event and value."""
    records, of_row = np.unique(log.record, return_inverse=True)
    newest_ms = np.zeros(len(records), dtype=np.int64)
    np.maximum.at(newest_ms, of_row, log.closes_ms)
    return np.asarray(log.closes_ms == newest_ms[of_row])


def _later(counts: Ledger, by_ms: int, case: RunFacts) -> Ledger:
    codes = case.oracle.codes
    return Ledger({codes.one(codes.key(cell), codes.field(cell) + by_ms): n for cell, n in counts.items()})


def _first_fares(case: RunFacts) -> Ledger:
    """Return a maximum of only the first event of each cell."""
    log = case.events
    order = np.lexsort((log.id, log.cell))
    first = np.zeros(len(log), dtype=np.bool_)
    first[order[np.unique(log.cell[order], return_index=True)[1]]] = True
    return folded(case.oracle, log, first)


def _dropped_by_their_own_time(honest: RunFacts, sent: Events) -> Iterator[tuple[str, RunFacts]]:
    """Make the job drop events that are older than those around them, but in time for their windows."""
    is_old = sent["event_id"] % EACH_LATE == EACH_LATE - 1
    log = in_cells({**sent, times.OWN: sent[times.OWN] - LATE_MS * is_old}, honest.oracle)
    whole = folded(honest.oracle, log)
    kept = folded(honest.oracle, log, log.id % EACH_LATE != EACH_LATE - 1)
    changed = replace(
        honest,
        judged=judged(log, sent_us=(EPOCH_MS + EVERY_MS * log.id) * 1000),
        tape_ledger=whole,
        log_ledger=whole,
        expectation=Expectation(whole, whole),
        observed=Observed(kept, ()),
    )
    yield "rides that come late are dropped", changed
