"""A minute of sample events for checking a declaration before anything is sent."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from harness.util.seeded_draws import Lane, between
from workloads.declared.arrow import Arrow
from workloads.declared.declaration import Declaration
from workloads.declared.draws import Columns, content
from workloads.declared.fields import time_path
from workloads.declared.oracle import EVENT, EVENT_ID

EVENTS = 1_000
COPIES = 10  # the first events again, because a tape sends some twice
MINUTE_MS = 60_000
LATEST_MS = 5_000
EPOCH_MS = 1_767_225_600_000  # 2026 begins
SEED = 1


def columns() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return ids, raw draws and times. They are out of order, and some events occur twice."""
    ids = np.concatenate([np.arange(EVENTS), np.arange(COPIES)])
    late_ms = between(Lane.of(SEED, "sample", "late").at(ids), 0, LATEST_MS)
    return ids, Lane.of(SEED, "sample").at(ids), EPOCH_MS + ids * MINUTE_MS // EVENTS - late_ms


def sample(declaration: Declaration, *, at_once: bool = False) -> tuple[Columns, pa.Table]:
    """Return the events as columns, and as the relation `events`.

    `at_once`: all of one time. Where a cell needs several events, it has them then.
    """
    ids, draws, times_ms = columns()
    if at_once:
        times_ms = np.full_like(times_ms, EPOCH_MS)
    drawn = {**content(declaration.fields, SEED, draws), time_path(declaration.fields): times_ms}
    return drawn, relation(declaration, SEED, drawn, ids)


def relation(declaration: Declaration, seed: int, drawn: Columns, ids: np.ndarray) -> pa.Table:
    table = Arrow(declaration.fields, seed).table(drawn)
    return table.append_column(EVENT, pa.array(np.arange(len(ids)))).append_column(EVENT_ID, pa.array(ids))
