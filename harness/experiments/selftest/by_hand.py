"""A judged run put together by hand: honest unless told otherwise."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness import checksums
from harness.checks.case import Case, LogAudit, Named, Observed, Watched
from harness.checksums import Checksum
from harness.lateness import NO_BATCH, LogEvents
from harness.ledger import Cell, Expectation, Ledger, cell_codes, cell_of
from harness.model import (
    Certificate,
    Disorder,
    EngineReport,
    FaultSpec,
    Progress,
    RunSpec,
    Segment,
    TapeSpec,
)

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
VALID = Certificate(True, (), 10, 300, 300, 300, {"p99.9": 1.0}, 100.0)


def events(count: int = 300, partitions: int = 2) -> LogEvents:
    """One event each 100 ms, dealt to campaigns and partitions in turn."""
    n = np.arange(count, dtype=np.int64)
    rows = np.lexsort((n, n % partitions))
    return LogEvents(
        (n % partitions).astype(np.int16)[rows],
        (n // partitions)[rows],
        n[rows],
        (n % CAMPAIGNS)[rows],
        (EPOCH_MS + 100 * n)[rows],
    )


def sums(log: LogEvents) -> dict[Cell, Checksum]:
    """What an honest job in checksum mode writes."""
    window = log.time_ms // WINDOW_MS * WINDOW_MS
    return {cell_of(code): pair for code, pair in checksums.by_cell(cell_codes(log.campaign, window), log.id).items()}


def watched(log: LogEvents, sent_ms: NDArray[np.int64]) -> Watched:
    """Each event is seen SEEN_AFTER_MS after it was sent."""
    order = np.argsort(sent_ms, kind="stable")
    campaign, window = log.campaign[order], log.time_ms[order] // WINDOW_MS * WINDOW_MS
    so_far: dict[tuple[int, int], int] = {}
    count = []
    for cell in zip(campaign.tolist(), window.tolist(), strict=True):
        so_far[cell] = so_far.get(cell, 0) + 1
        count.append(so_far[cell])
    at_us = (sent_ms[order] + SEEN_AFTER_MS) * 1000
    return Watched(at_us, campaign, window, np.array(count, dtype=np.int64), longest_gap_ms=50.0)


def told(log: LogEvents) -> tuple[Progress, ...]:
    """A line each second: all that was sent until then is done."""
    partitions = np.unique(log.partition)
    last_ms = int(log.time_ms.max(initial=EPOCH_MS)) + 1000
    return tuple(
        Progress(
            at_ms + SEEN_AFTER_MS,
            number,
            0,
            {int(p): int(((log.partition == p) & (log.time_ms <= at_ms)).sum()) for p in partitions},
        )
        for number, at_ms in enumerate(range(EPOCH_MS, last_ms, 1000))
    )


def case(log: LogEvents | None = None, **changes: Any) -> Case:
    """Events are sent at their event time, done within a second and seen after a third of one."""
    log = events() if log is None else log
    ledger = Ledger.of_events(log.campaign, log.time_ms, WINDOW_MS)
    none = np.zeros(len(log), dtype=np.bool_)
    honest = Case(
        spec=SPEC,
        epoch_ms=EPOCH_MS,
        campaign_names=tuple(f"campaign-{i}" for i in range(CAMPAIGNS)),
        sent=len(log),
        audit=LogAudit(len(log), len(log), Named(), Named(), Named(), Named()),
        tape_ledger=ledger,
        log_ledger=ledger,
        events=log,
        batch=np.full(len(log), NO_BATCH),
        dropped=none,
        permitted=none,
        sent_late=none,
        expectation=Expectation(ledger, ledger),
        observed=Observed(ledger, (), sums(log)),
        drops_late=False,
        batch_log=None,
        exact=False,
        faults=(),
        engine=EngineReport("drained", "all done"),
        certificate=VALID,
        watched=watched(log, log.time_ms),
        sent_us=log.time_ms * 1000,
        told=told(log),
        span_ms=(EPOCH_MS - 60_000, EPOCH_MS + 600_000),
    )
    return replace(honest, **changes)
