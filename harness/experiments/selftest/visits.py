"""Planted mistakes of another question: page visits in windows that overlap, with a count and a distinct count each.

A mistake is made with the events, as an engine makes it, and not with the answer: what it then shows is folded anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from generators.draws import Lane
from harness.experiments.selftest.by_hand import EPOCH_MS, SPEC, case
from harness.judging import lateness
from harness.judging.checks.case import Case
from harness.judging.ledger import Expectation, Ledger
from harness.judging.readings import LogEvents, Observed, folded
from harness.model import TapeSpec
from workloads.base import Oracle
from workloads.registry import codec_of, oracle_of, shipped

QUESTION = shipped("page_visits_sliding")
EVENTS, PARTITIONS, EVERY_MS = 600, 2, 100
STEP_MS = 2_000
TAPE = replace(SPEC.tape, workload=QUESTION.id, declaration=QUESTION.declaration, campaigns=0)
ASKED = replace(SPEC, tape=TAPE)

Events = Mapping[str, NDArray[Any]]


@cache  # DuckDB folds them; no mutant changes how
def planted() -> tuple[tuple[str, Case], ...]:
    return tuple(_planted())


def _planted() -> Iterator[tuple[str, Case]]:
    oracle, sent = oracle_of(ASKED), events()
    log = in_cells(sent, oracle)
    right = folded(oracle, log)
    agreed = {"tape_ledger": right, "log_ledger": right, "expectation": Expectation(right, right)}
    nobody_looked = {"watched": None, "blind": "nobody looked"}
    honest = case(log, spec=ASKED, oracle=oracle, observed=Observed(right, ()), **agreed, **nobody_looked)
    in_order = np.sort(right.cells)  # keys are numbered value by value: all of the visits, then all of the visitors
    visits, visitors = (cells.tolist() for cells in np.split(in_order, [_cells_of_first(in_order, oracle)]))

    def showing(counts: Ledger) -> Case:
        return replace(honest, observed=Observed(counts, ()))

    yield "visits, all of them right", honest
    yield "a visit at the edge, in the window before", showing(folded(oracle, in_cells(_moved(sent), oracle)))
    yield "a visit in four of its five windows", showing(folded(oracle, log.only(np.arange(len(log)) != len(log) // 2)))
    yield "a visitor counted twice", showing(right + Ledger({visitors[0]: 1}))
    yield "visitors, nearly", showing(right + Ledger({cell: right.count(cell) // 5 for cell in visitors}))
    as_visitors = {cell: right.count(same) for cell, same in zip(visitors, visits, strict=True)}
    yield "all visits for visitors", showing(Ledger({**right, **as_visitors}))
    yield "visits in a window of another length", showing(right + Ledger({max(visits) + STEP_MS: 1}))


def events(tape: TapeSpec = TAPE) -> Events:
    """A visit each 100 ms, the first one at the very beginning of a window; by partition and offset, as in a log."""
    n = np.arange(EVENTS, dtype=np.int64)
    rows = np.lexsort((n, n % PARTITIONS))
    none = np.zeros(EVENTS, dtype=np.bool_)
    content = codec_of(tape).draw(Lane.of(tape.seed, "selftest").at(n), probes=None, hot=none, sure=none)
    columns = {**content, "partition": (n % PARTITIONS).astype(np.int16), "offset": n // PARTITIONS, "event_id": n}
    columns["event_time_ms"] = EPOCH_MS + EVERY_MS * n
    return {name: column[rows] for name, column in columns.items()}


def in_cells(sent: Events, oracle: Oracle) -> LogEvents:
    return lateness.events_of(sent, oracle)[0]


def _moved(sent: Events) -> Events:
    """What begins a window ends the one before, as when somebody has written `<=` for `<`."""
    first = int(np.flatnonzero(sent["event_time_ms"] % STEP_MS == 0)[EVENTS // 60])
    moved = sent["event_time_ms"].copy()
    moved[first] -= 1
    return {**sent, "event_time_ms": moved}


def _cells_of_first(cells: NDArray[np.int64], oracle: Oracle) -> int:
    return int((oracle.codes.keys(cells) < oracle.groups).sum())
