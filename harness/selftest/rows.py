"""Planted mistakes of streaming ETL: each event is a row of a table, and a reader sees whole batches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from harness.evidence.ledger import Ledger
from harness.evidence.observed import NO_BATCH, LogEvents, Observed, Watched
from harness.judging.checks.case import RunFacts
from harness.selftest.by_hand import changed
from harness.selftest.declared import honest_run, of_question, once
from workloads.base import NULL, Ints
from workloads.text_values import text_value

CAMPAIGNS, BATCH, SEEN_AFTER_MS, HALF_LATER_MS = 3, 50, 500, 400
AN_HOUR_MS = 3_600_000
spec = of_question("etl", "")
ASKED = replace(spec, tape=replace(spec.tape, campaigns=CAMPAIGNS))


@once
def planted() -> Iterator[tuple[str, RunFacts]]:
    plain = honest_run(ASKED)
    batch = plain.events.id // BATCH
    honest = changed(plain, whole_batches=True, batch=batch, watched=_seen(plain.events, batch))
    right, log, codes = honest.log_ledger, honest.events, honest.oracle.codes
    names = [value.name for value in honest.oracle.values]
    event = int(log.id[len(log) // 2])

    def showing(counts: Ledger) -> RunFacts:
        return replace(honest, observed=Observed(counts, ()))

    def saying(name: str, value: int) -> RunFacts:
        return showing(Ledger({**right, codes.one(names.index(name), event): value}))

    rows = codes.one(0, event)
    of_event = {codes.one(key, event): 0 for key in range(len(names))}
    hour = right.count(codes.one(names.index("hour"), event))
    late, third = log.id % BATCH >= BATCH // 2, log.only(batch == 3)
    replayed = Ledger(dict.fromkeys(third.cell[codes.keys(third.cell) == 0].tolist(), 1))
    yield "rows, all of them right", honest
    yield "an event that is two rows", showing(right + Ledger({rows: 1}))
    yield "a batch whose events are two rows each", showing(right + replayed)
    yield "an event that is no row", showing(Ledger({**right, **of_event}))
    yield "one event twice, and another one not at all", showing(_swapped(right, log, honest))
    yield "a row in the partition of another time zone", saying("hour", hour + AN_HOUR_MS)
    yield "a row without its campaign", saying("campaign_id", NULL)
    yield "a row whose type was not trimmed", saying("event_type", text_value(" view"))
    half = replace(honest, watched=_seen(log, batch, np.where((batch == 2) & late, HALF_LATER_MS, 0)))
    yield "half a batch that a reader saw", half
    yield "the same, where whole batches are not claimed", replace(half, whole_batches=False)
    yield "a claim of whole batches, and no batches are known", changed(honest, batch=np.full(len(log), NO_BATCH))


def _swapped(right: Ledger, log: LogEvents, case: RunFacts) -> Ledger:
    first, last = (int(log.id[row]) for row in (0, -1))
    keys = range(len(case.oracle.values))
    gone = {case.oracle.codes.one(key, last): 0 for key in keys}
    return Ledger({**right, **gone}) + Ledger({case.oracle.codes.one(0, first): 1})


def _seen(log: LogEvents, batch: Ints, later_ms: Ints | int = 0) -> Watched:
    """Return the polls of a table that shows each batch when its last event has come, some rows later than others."""
    last_ms = np.array([log.time_ms[batch == each].max() for each in range(int(batch.max()) + 1)])
    at_us = np.asarray(last_ms[batch] + SEEN_AFTER_MS + later_ms, dtype=np.int64) * 1000
    order = np.argsort(at_us, kind="stable")
    ones = np.ones(len(log), dtype=np.int64)
    return Watched(at_us[order], log.cell[order], ones, longest_gap_ms=50.0)
