"""How late all events are at one rate, with bands: whole blocks of 20 s are drawn anew, never single events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from harness.experiments.curve.plateau import Latencies, Measured

DRAWS = 200
TAIL = 0.025
SEED = 20_023
# A quantile is drawn where so many events lie beyond it, in each of two visits.
BEYOND = 10


@dataclass(frozen=True)
class Band:
    low: float
    mid: float
    high: float


def quantile(visits: Sequence[Measured], share: float) -> Band | None:
    """Of all visits together; None where one holds too few events, or too many were never seen."""
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
    """The longest that was seen; a largest one has no band."""
    found = max((visit.events.quantile_ms(1.0) for visit in visits), default=float("nan"))
    return float(found) if np.isfinite(found) else None
