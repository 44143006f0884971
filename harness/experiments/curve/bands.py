"""Latency of all events at one rate, with bands: the bootstrap draws whole blocks of 20 s, never single events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from harness.experiments.curve.plateau import Latencies, Measured

DRAWS = 200
TAIL = 0.025
SEED = 20_023
# A quantile needs so many events beyond it in each of two repeats.
BEYOND = 10


@dataclass(frozen=True)
class Band:
    low: float
    mid: float
    high: float


def quantile(visits: Sequence[Measured], share: float) -> Band | None:
    """Return the quantile over all visits; None if one has too few events, or too many were never seen."""
    own = [visit.events for visit in visits]
    if not own or any(each.samples * (1 - share) < BEYOND for each in own):
        return None
    all_ = Latencies(np.concatenate([each.blocks for each in own]))
    count, draw = len(all_.blocks), np.random.default_rng(SEED)
    drawn = [all_.quantile_ms(share, draw.integers(count, size=count)) for _ in range(DRAWS)]
    low, high = np.quantile(drawn, (TAIL, 1 - TAIL), method="nearest")
    mid = all_.quantile_ms(share)
    return Band(float(low), mid, float(high)) if np.isfinite([low, mid, high]).all() else None


def most_ms(visits: Sequence[Measured]) -> float | None:
    """Return the longest latency that was seen. A maximum has no band."""
    found = max((visit.events.quantile_ms(1.0) for visit in visits), default=float("nan"))
    return float(found) if np.isfinite(found) else None
