"""Planted mistakes of other questions: page visits in sliding windows and in sessions, with a distinct count each.

A mistake is made in the events, as by an engine, and not in the answer: the results are folded from them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from harness.evidence.ledger import Expectation, Ledger
from harness.evidence.observed import STAMPED, NamedLate, Observed, folded
from harness.judging import times
from harness.judging.checks.case import RunFacts
from harness.model import EVENT_TIME, RunSpec, Time
from harness.selftest.by_hand import changed
from harness.selftest.declared import (
    EVENTS,
    Events,
    Names,
    events,
    honest_run,
    in_cells,
    of_question,
    once,
    run_with_old,
    with_watermarks,
)
from workloads.base import Ints, Oracle
from workloads.shipped import shipped

PLAIN, SLIDING, SESSIONS = "page_visits", "page_visits_sliding", "page_visits_sessions"
LENGTH_MS, STEP_MS = 10_000, 2_000
EACH_OLD = 40  # every so many events one is older than an engine waits for


@once
def planted() -> Iterator[tuple[str, RunFacts]]:
    yield from _sliding()
    yield from _late_for_some()
    yield from _sessions()
    yield from _by_append()


def asked(workload: str) -> RunSpec:
    return of_question(workload, shipped(workload).declaration)


def _honest(workload: str, time: Time = EVENT_TIME) -> tuple[RunFacts, Callable[[Ledger], RunFacts]]:
    """Return a run where everything is right, and a function that returns it with other results."""
    honest = honest_run(replace(asked(workload), time=time))
    return honest, lambda counts: replace(honest, observed=Observed(counts, ()))


def _sliding() -> Iterator[tuple[str, RunFacts]]:
    honest, showing = _honest(SLIDING)
    oracle, log, right, sent = honest.oracle, honest.events, honest.log_ledger, events(honest.spec.tape)
    visits, visitors = _by_value(right, oracle)

    yield "visits, all of them right", honest
    yield "a visit at the edge, in the window before", showing(folded(oracle, in_cells(_moved(sent), oracle)))
    yield "a visit in four of its five windows", showing(folded(oracle, log.only(np.arange(len(log)) != len(log) // 2)))
    yield "a visitor counted twice", showing(right + Ledger({visitors[0]: 1}))
    yield "visitors, nearly", showing(right + Ledger({cell: right.count(cell) // 5 for cell in visitors}))
    as_visitors = {cell: right.count(same) for cell, same in zip(visitors, visits, strict=True)}
    yield "all visits for visitors", showing(Ledger({**right, **as_visitors}))
    yield "visits in a window of another length", showing(right + Ledger({max(visits) + STEP_MS: 1}))


def _late_for_some() -> Iterator[tuple[str, RunFacts]]:
    """Yield runs with events that are late for one window and in time for the next, as the engine itself reports."""
    yield "visits late for some of their windows, each of these named", named_by_window()
    yield "visits late for some of their windows, and one of these not named", named_by_window(forgets=1)
    yield "visits late for some of their windows, these named by their ends", named_by_window(opens_ms=LENGTH_MS)
    yield "visits late for some of their windows, each named with its watermark", named_by_watermark()
    yield (
        "visits late for some of their windows, with a watermark that closes too few",
        named_by_watermark(behind_ms=STEP_MS),
    )


def named_by_window(*, forgets: int = 0, opens_ms: int = 0) -> RunFacts:
    """Return the run of an engine that reads events as they are sent, some of them late, drops by its watermark, and
    names the event and the window. It leaves out the first `forgets`, and the names of windows are off by `opens_ms`.
    """
    return _with_old(lambda record, field, _: _windows(record, field + opens_ms, forgets))


def named_by_watermark(*, behind_ms: int = 0) -> RunFacts:
    """Return the same run, if the engine names each event with the watermark by which it judged it."""
    return _with_old(lambda record, _, watermark_ms: with_watermarks(record, watermark_ms - behind_ms))


def _windows(record: Ints, field: Ints, forgets: int) -> NamedLate:
    pairs = np.unique(np.column_stack((record, field)), axis=0)
    return NamedLate(np.empty(0, dtype=np.int64), windows=pairs[forgets:])


def _with_old(names: Names) -> RunFacts:
    spec = asked(SLIDING)
    is_old = events(spec.tape)["event_id"] % EACH_OLD == EACH_OLD - 1
    return run_with_old(spec, np.where(is_old, spec.watermark_ms + LENGTH_MS // 2, 0), names)


def _sessions() -> Iterator[tuple[str, RunFacts]]:
    honest, showing = _honest(SESSIONS)
    right = honest.log_ledger
    pages, different = _by_value(right, honest.oracle)
    first, second = _two_of_one_visitor(pages, honest.oracle)
    is_open = honest.events.cell == pages[-1]
    must = right - Ledger({pages[-1]: right.count(pages[-1])})
    by_closing = changed(honest, is_open=is_open, expectation=Expectation(must, right))

    yield "sessions, all of them right", honest
    longest = max(pages, key=right.count)
    yield (
        "a session joined across a gap",
        showing(right + Ledger({first: right.count(second), second: -right.count(second)})),
    )
    yield "a session cut in two", showing(right + Ledger({longest: -1, longest + 1: 1}))
    yield "a session that nothing has closed, and no result", replace(by_closing, observed=Observed(must, ()))
    yield (
        "a session that nothing has closed, and one lost",
        replace(by_closing, observed=Observed(must - Ledger({pages[0]: 1}), ())),
    )
    yield "a page seen twice in a session", showing(right + Ledger({different[0]: 1}))


def _by_append() -> Iterator[tuple[str, RunFacts]]:
    """Yield runs of a job that counts by the broker's timestamp."""
    honest, showing = _honest(PLAIN, "append")
    oracle, sent = honest.oracle, events(honest.spec.tape)
    elsewhere = _of_another_window(sent)
    one_by_its_own = {**sent, times.OWN: np.where(elsewhere, sent[times.OWN], sent[STAMPED])}

    yield "visits by the broker's time, all of them right", honest
    yield (
        "a visit by its own time among those by the broker's",
        showing(folded(oracle, in_cells(one_by_its_own, oracle))),
    )
    yield "all visits by their own time", showing(honest.log_ledger)


def _of_another_window(sent: Events) -> NDArray[np.bool_]:
    """Select the first event whose own window has ended when the broker appends it."""
    first = int(np.flatnonzero(sent[times.OWN] // LENGTH_MS < sent[STAMPED] // LENGTH_MS)[0])
    return np.asarray(np.arange(len(sent[STAMPED])) == first)


def _two_of_one_visitor(pages: Sequence[int], oracle: Oracle) -> tuple[int, int]:
    """Return two adjacent cells of one key, the older one first."""
    keys = oracle.codes.keys(np.array(pages))
    row = int(np.flatnonzero(keys[1:] == keys[:-1])[0])
    return pages[row], pages[row + 1]


def _moved(sent: Events) -> Events:
    """Move an event at the begin of a window into the window before, the result of `<=` instead of `<`."""
    first = int(np.flatnonzero(sent["event_time_ms"] % STEP_MS == 0)[EVENTS // 60])
    moved = sent["event_time_ms"].copy()
    moved[first] -= 1
    return {**sent, "event_time_ms": moved}


def _by_value(right: Ledger, oracle: Oracle) -> tuple[list[int], list[int]]:
    """Order cells by value: all of the first value, then all of the second."""
    in_order = np.sort(right.cells)
    first = int((oracle.codes.keys(in_order) < oracle.groups).sum())
    return in_order[:first].tolist(), in_order[first:].tolist()
