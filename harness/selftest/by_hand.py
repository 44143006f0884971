"""A judged run that is assembled by hand: honest by default."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from harness.evidence import checksums
from harness.evidence.checksums import Checksum
from harness.evidence.grouping import repeated
from harness.evidence.ledger import Expectation, Ledger
from harness.evidence.observed import NO_BATCH, LogAudit, LogEvents, Named, Observed, Watched, folded
from harness.judging.checks.case import RunFacts
from harness.judging.judged import Judged, JudgedLog
from harness.model import (
    Certificate,
    Disorder,
    EngineReport,
    FaultReport,
    FaultSpec,
    Progress,
    RunSpec,
    Segment,
    TapeSpec,
    When,
)
from workloads.base import Ints, Kind, Oracle, Value
from workloads.registry import oracle_of

WINDOW_MS = 10_000
EPOCH_MS = 1_750_000_000_000
CAMPAIGNS = 3
SEEN_AFTER_MS = 300

SPEC = RunSpec(
    scenario="by-hand",
    engine="fake",
    sink="absolute",
    tape=TapeSpec(1, (Segment(30_000, 10.0, 10.0),), 1, 20, 2, CAMPAIGNS, 10, Disorder()),
    window_ms=WINDOW_MS,
    watermark_ms=10_000,
    disorder_name="none",
    late_dropped_max=0,
    fault=FaultSpec("none"),
)
ORACLE = oracle_of(SPEC)
CODES = ORACLE.codes


class _Sums:
    """The same question with sums as values: a sum that is too large does not reveal a number of events."""

    values = (Value("cents", Kind.SUM),)

    def __getattr__(self, name: str) -> Any:
        return getattr(ORACLE, name)


SUMS = cast(Oracle, _Sums())
VALID = Certificate(True, (), 10, 300, 300, 300, {"p99.9": 1.0}, 100.0)


def events(count: int = 300, partitions: int = 2) -> LogEvents:
    """Return one event per 100 ms, distributed round-robin over keys and partitions."""
    n = np.arange(count, dtype=np.int64)
    rows = np.lexsort((n, n % partitions))
    return dated(
        (n % partitions).astype(np.int16)[rows],
        (n // partitions)[rows],
        n[rows],
        (n % CAMPAIGNS)[rows],
        (EPOCH_MS + 100 * n)[rows],
    )


def dated(partition: NDArray[Any], offset: NDArray[Any], ids: Ints, key: Ints, time_ms: Ints) -> LogEvents:
    """Return events in the cells of their key and time."""
    begins_ms = time_ms // WINDOW_MS * WINDOW_MS
    return LogEvents(partition, offset, ids, time_ms, CODES.of(key, begins_ms), begins_ms + WINDOW_MS)


def cell(key: int, window_ms: int) -> int:
    return CODES.one(key, window_ms)


def ledger(log: LogEvents, rows: NDArray[np.bool_] | None = None) -> Ledger:
    """Return the content of cells with these events."""
    return folded(ORACLE, log if rows is None else log.only(rows))


def sums(log: LogEvents) -> dict[int, Checksum]:
    """Return the sums that an honest job writes in checksum mode."""
    return checksums.by_cell(log.cell, log.id)


def watched(log: LogEvents, sent_ms: NDArray[np.int64]) -> Watched:
    """Return the polls of results in which each event is visible SEEN_AFTER_MS after it was sent."""
    order = np.argsort(sent_ms, kind="stable")
    so_far: Counter[int] = Counter()
    count = []
    for code in log.cell[order].tolist():
        so_far[code] += 1
        count.append(so_far[code])
    at_us = (sent_ms[order] + SEEN_AFTER_MS) * 1000
    return Watched(at_us, log.cell[order], np.array(count, dtype=np.int64), longest_gap_ms=50.0)


def told(log: LogEvents) -> tuple[Progress, ...]:
    """Return a progress line per second: all events sent until then are done."""
    partitions = np.unique(log.partition)
    last_ms = int(log.time_ms.max(initial=EPOCH_MS)) + 1000
    return tuple(
        Progress(
            at_ms + SEEN_AFTER_MS,
            number,
            0,
            {int(p): len(np.unique(log.offset[(log.partition == p) & (log.time_ms <= at_ms)])) for p in partitions},
        )
        for number, at_ms in enumerate(range(EPOCH_MS, last_ms, 1000))
    )


COLUMNS = frozenset(each.name for each in fields(Judged))


def judged(log: LogEvents, **columns: Any) -> JudgedLog:
    """Return events that were sent at their event time and are not late, but for these columns."""
    none = np.zeros(len(log), dtype=np.bool_)
    of_events: dict[str, Any] = {
        "batch": np.full(len(log), NO_BATCH),
        "sent_us": log.time_ms * 1000,
        **dict.fromkeys(("dropped", "counted_before", "permitted", "sent_late", "is_open"), none),
    }
    return JudgedLog.of(Judged(log, **(of_events | columns)))


def changed(case: RunFacts, **changes: Any) -> RunFacts:
    """Return a case with other facts, or other columns of its events."""
    columns = {name: changes.pop(name) for name in COLUMNS & changes.keys()}
    return replace(case, judged=case.judged.but(**columns), **changes) if columns else replace(case, **changes)


def case(log: LogEvents | None = None, **changes: Any) -> RunFacts:
    """Return a case whose events are sent at their event time, done within a second and visible after a third
    of one.
    """
    log = events() if log is None else log
    right = ledger(log)
    honest = RunFacts(
        spec=SPEC,
        epoch_ms=EPOCH_MS,
        oracle=ORACLE,
        sent=len(log),
        audit=LogAudit(len(log), len(log), Named(), Named(), Named(), Named(), again=repeated(log.id)),
        tape_ledger=right,
        log_ledger=right,
        judged=judged(log),
        expectation=Expectation(right, right),
        observed=Observed(right, (), sums(log)),
        drops_late=False,
        final=False,
        shows_a_step_later=False,
        in_order=False,
        whole_batches=False,
        batch_log=None,
        exact=False,
        faults=(),
        engine=EngineReport("drained", "all done"),
        certificate=VALID,
        watched=watched(log, log.time_ms),
        told=told(log),
        span_ms=(EPOCH_MS - 60_000, EPOCH_MS + 600_000),
    )
    return changed(honest, **changes)


KILL = FaultSpec("kill@c3:batch=3", "kill", When("point", "c3", 3))
LANDED = FaultReport(KILL, True, True, "seen", batch=3, replayed=True, at_ms=EPOCH_MS + 5_000)
HONEST = case()
BEYOND = cell(0, EPOCH_MS + 9_000_000)
FIRST, LAST = min(HONEST.log_ledger), max(HONEST.log_ledger)


def seen(change: Ledger | dict[int, int], **more: Any) -> RunFacts:
    return case(observed=Observed(HONEST.log_ledger + Ledger(change), ()), **more)
