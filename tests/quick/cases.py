"""A judged run put together by hand: honest unless told otherwise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from harness.checks.case import Case, LogAudit, Named, Observed
from harness.lateness import NO_BATCH, LogEvents
from harness.ledger import Expectation, Ledger
from harness.model import (
    Certificate,
    Disorder,
    EngineReport,
    FaultSpec,
    RunSpec,
    Segment,
    TapeSpec,
)

WINDOW_MS = 10_000
EPOCH_MS = 1_750_000_000_000
CAMPAIGNS = 3

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


def case(log: LogEvents | None = None, **changes) -> Case:
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
        observed=Observed(ledger, ()),
        drops_late=False,
        batch_log=None,
        exact=False,
        faults=(),
        engine=EngineReport("drained", "all done"),
        certificate=VALID,
    )
    return replace(honest, **changes)
