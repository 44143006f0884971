"""Planted mistakes of other questions: page visits in windows that overlap and in sessions, with a distinct count each.

A mistake is made with the events, as an engine makes it, and not with the answer: what it then shows is folded anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from generators.draws import Lane
from harness.experiments.selftest.by_hand import EPOCH_MS, SPEC, case
from harness.judging import lateness, times
from harness.judging.checks.case import Case
from harness.judging.ledger import Expectation, Ledger
from harness.judging.readings import STAMPED, LogEvents, Observed, folded
from harness.model import EVENT_TIME, RunSpec, TapeSpec, Time
from workloads.base import Oracle
from workloads.registry import codec_of, oracle_of, shipped

PLAIN, SLIDING, SESSIONS = "page_visits", "page_visits_sliding", "page_visits_sessions"
EVENTS, PARTITIONS, EVERY_MS = 600, 2, 100
LENGTH_MS, STEP_MS = 10_000, 2_000
DELAY_MS = 350  # until a broker has appended an event

Events = Mapping[str, NDArray[Any]]


def asked(workload: str) -> RunSpec:
    declared = shipped(workload).declaration
    return replace(SPEC, tape=replace(SPEC.tape, workload=workload, declaration=declared, campaigns=0))


@cache  # DuckDB folds them; no mutant changes how
def planted() -> tuple[tuple[str, Case], ...]:
    return tuple(_planted())


def _planted() -> Iterator[tuple[str, Case]]:
    yield from _sliding()
    yield from _sessions()
    yield from _by_append()


def _honest(workload: str, time: Time = EVENT_TIME) -> tuple[Case, Callable[[Ledger], Case]]:
    """A run in which all is right, and what makes one of it whose results are others."""
    spec = replace(asked(workload), time=time)
    oracle, sent = oracle_of(spec), events(spec.tape)
    log = in_cells(times.retimed(pa.table(dict(sent)), time, None), oracle)
    right, planned = folded(oracle, log), folded(oracle, in_cells(sent, oracle))
    agreed = {"tape_ledger": planned, "log_ledger": planned, "expectation": Expectation(right, right)}
    nobody_looked = {"watched": None, "blind": "nobody looked"}
    honest = case(log, spec=spec, oracle=oracle, observed=Observed(right, ()), **agreed, **nobody_looked)
    return honest, lambda counts: replace(honest, observed=Observed(counts, ()))


def _sliding() -> Iterator[tuple[str, Case]]:
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


def _sessions() -> Iterator[tuple[str, Case]]:
    honest, showing = _honest(SESSIONS)
    right = honest.log_ledger
    pages, different = _by_value(right, honest.oracle)
    first, second = _two_of_one_visitor(pages, honest.oracle)
    is_open = honest.events.cell == pages[-1]
    must = right - Ledger({pages[-1]: right.count(pages[-1])})
    by_closing = replace(honest, is_open=is_open, expectation=Expectation(must, right))

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


def _by_append() -> Iterator[tuple[str, Case]]:
    """Of a job that counts by the time at which the broker had an event."""
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
    """The first whose own window is over when the broker has it."""
    first = int(np.flatnonzero(sent[times.OWN] // LENGTH_MS < sent[STAMPED] // LENGTH_MS)[0])
    return np.asarray(np.arange(len(sent[STAMPED])) == first)


def _two_of_one_visitor(pages: Sequence[int], oracle: Oracle) -> tuple[int, int]:
    """Cells of one key stand side by side, the older one first."""
    keys = oracle.codes.keys(np.array(pages))
    row = int(np.flatnonzero(keys[1:] == keys[:-1])[0])
    return pages[row], pages[row + 1]


def events(tape: TapeSpec) -> Events:
    """A visit each 100 ms, the first one at the very beginning of a window; by partition and offset, as in a log."""
    n = np.arange(EVENTS, dtype=np.int64)
    rows = np.lexsort((n, n % PARTITIONS))
    none = np.zeros(EVENTS, dtype=np.bool_)
    content = codec_of(tape).draw(Lane.of(tape.seed, "selftest").at(n), probes=None, hot=none, sure=none)
    columns = {**content, "partition": (n % PARTITIONS).astype(np.int16), "offset": n // PARTITIONS, "event_id": n}
    columns[times.OWN] = EPOCH_MS + EVERY_MS * n
    columns[STAMPED] = columns[times.OWN] + DELAY_MS
    return {name: column[rows] for name, column in columns.items()}


def in_cells(sent: Events | pa.Table, oracle: Oracle) -> LogEvents:
    columns = {name: sent[name].to_numpy() for name in sent.column_names} if isinstance(sent, pa.Table) else sent
    return lateness.events_of(columns, oracle)[0]


def _moved(sent: Events) -> Events:
    """What begins a window ends the one before, as when somebody has written `<=` for `<`."""
    first = int(np.flatnonzero(sent["event_time_ms"] % STEP_MS == 0)[EVENTS // 60])
    moved = sent["event_time_ms"].copy()
    moved[first] -= 1
    return {**sent, "event_time_ms": moved}


def _by_value(right: Ledger, oracle: Oracle) -> tuple[list[int], list[int]]:
    """Keys are numbered value by value: all cells of the first value, then all of the second."""
    in_order = np.sort(right.cells)
    first = int((oracle.codes.keys(in_order) < oracle.groups).sum())
    return in_order[:first].tolist(), in_order[first:].tolist()
