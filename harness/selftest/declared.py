"""A judged run of a declared question, assembled by hand: its events, and the run of an honest engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from harness.evidence.ledger import Expectation
from harness.evidence.observed import STAMPED, LogEvents, NamedLate, Observed, folded
from harness.judging import lateness, times
from harness.judging.checks.case import RunFacts
from harness.judging.lateness import CountedLog
from harness.model import RunSpec, TapeSpec
from harness.selftest.by_hand import EPOCH_MS, SPEC, case, judged
from harness.util.seeded_draws import Lane
from workloads.base import COUNTS, Ints, Oracle
from workloads.registry import codec_of, oracle_of

EVENTS, PARTITIONS, EVERY_MS = 600, 2, 100
DELAY_MS = 350  # delay until a broker has appended an event

Events = Mapping[str, NDArray[Any]]
Names = Callable[[Ints, Ints, Ints], NamedLate]  # from record, field of the cell, and watermark of each late event


def once(planted: Callable[[], Iterator[tuple[str, RunFacts]]]) -> Callable[[], tuple[tuple[str, RunFacts], ...]]:
    """Make runs of a declared question only once, because DuckDB folds them and no mutant changes that."""
    return cache(lambda: tuple(planted()))


def of_question(workload: str, declaration: str) -> RunSpec:
    """Return the spec of a run of this question."""
    return replace(SPEC, tape=replace(SPEC.tape, workload=workload, declaration=declaration, campaigns=0))


def honest_run(spec: RunSpec, given: Events | None = None) -> RunFacts:
    """Return a run where everything is right, without polls of its results. `given`: its events instead of drawn
    ones.
    """
    oracle, sent = oracle_of(spec), events(spec.tape) if given is None else given
    log = in_cells(times.retimed(pa.table(dict(sent)), spec.time, None), oracle)
    right, planned = folded(oracle, log), folded(oracle, in_cells(sent, oracle))
    return case(
        log,
        spec=spec,
        oracle=oracle,
        tape_ledger=planned,
        log_ledger=planned,
        expectation=Expectation(right, right),
        observed=Observed(right, ()),
        watched=None,
        blind="the results were not polled",
    )


def events(tape: TapeSpec) -> Events:
    """Return an event per 100 ms, the first one at the beginning of a window, sorted by partition and offset as in a
    log.
    """
    n = np.arange(EVENTS, dtype=np.int64)
    rows = np.lexsort((n, n % PARTITIONS))
    none = np.zeros(EVENTS, dtype=np.bool_)
    content = codec_of(tape).draw(Lane.of(tape.seed, "selftest").at(n), probes=None, hot=none, sure=none)
    columns = {**content, "partition": (n % PARTITIONS).astype(np.int16), "offset": n // PARTITIONS, "event_id": n}
    columns[times.OWN] = EPOCH_MS + EVERY_MS * n
    columns[STAMPED] = columns[times.OWN] + DELAY_MS
    return {name: column[rows] for name, column in columns.items()}


def run_with_old(spec: RunSpec, old_ms: Ints, names: Names) -> RunFacts:
    """Return the run of an engine that reads events as they are sent, drops late ones by its watermark, and names them.
    `old_ms`: how much each event is older than it would be; the others are in order.
    """
    oracle, sent = oracle_of(spec), dict(events(spec.tape))
    newest_ms = sent[times.OWN] - spec.watermark_ms
    sent[times.OWN] = sent[times.OWN] - old_ms
    log = pa.table({**sent, "kind": np.full(EVENTS, COUNTS, dtype=np.int8)})
    placed, row = lateness.events_of(sent, oracle)
    gone = placed.closes_ms <= newest_ms[row]
    named = names(placed.record[gone], oracle.codes.fields(placed.cell[gone]), newest_ms[row][gone])
    known = CountedLog(log, None, spec, oracle, codec_of(spec.tape), named=named).whole
    kept, whole = folded(oracle, known.events, ~known.dropped), folded(oracle, known.events)
    return replace(
        honest_run(spec),
        oracle=oracle,
        judged=judged(known.events, dropped=known.dropped, permitted=known.permitted, batch=known.batch),
        tape_ledger=whole,
        log_ledger=whole,
        expectation=Expectation(kept, kept),
        observed=Observed(folded(oracle, known.events, ~gone), ()),
        drops_late=True,
        named=named,
        exact=known.exact,
        spec=replace(spec, late_dropped_max=None),
    )


def with_watermarks(record: Ints, watermark_ms: Ints) -> NamedLate:
    """Return the names of these records, each with its watermark."""
    pairs = np.unique(np.column_stack((record, watermark_ms)), axis=0)
    return NamedLate(np.empty(0, dtype=np.int64), watermarks=pairs)


def in_cells(sent: Events | pa.Table, oracle: Oracle) -> LogEvents:
    columns = {name: sent[name].to_numpy() for name in sent.column_names} if isinstance(sent, pa.Table) else sent
    return lateness.events_of(columns, oracle)[0]


def claims_order(run: RunFacts, left: Mapping[int, int]) -> RunFacts:
    """Return the run of a sink that claims order, with the position of each output."""
    return replace(run, observed=Observed(run.log_ledger, (), left=left), in_order=True)


def swapped(run: RunFacts, key: int) -> RunFacts:
    """Return the run with the first and the last output of a key at each other's position."""
    left = dict(run.observed.left or {})
    of_key = [cell for cell in left if run.oracle.codes.key(cell) == key]
    left[of_key[0]], left[of_key[-1]] = left[of_key[-1]], left[of_key[0]]
    return claims_order(run, left)


def in_order(log: LogEvents, oracle: Oracle) -> dict[int, int]:
    """Return the position of each output if all are emitted in order of event time."""
    outputs = log.only(oracle.codes.keys(log.cell) < oracle.groups)
    ordered = outputs.cell[np.argsort(outputs.time_ms, kind="stable")].tolist()
    return {cell: position for position, cell in enumerate(dict.fromkeys(ordered))}
