"""The band of steady load: the upper limit of a figure, read once a second, under usual conditions. Pure.

It is p95 of the figure under steady load, but at least twice and at most four times its median there. Each scenario
defines its steady part: the end of the load after a backlog, the time before the first burst.
"""

from __future__ import annotations

import numpy as np

from harness.measuring.recovery import BASELINE_SHARE
from harness.measuring.stats import Floats

FEWEST_S = 10  # of steady load, needed to know the usual values
USUAL = (2.0, 4.0)  # times the median


def band(steady: Floats) -> float:
    """Return the upper limit of the band; NaN if no value is known."""
    if not np.isfinite(steady).any():
        return float("nan")
    low, high = (times * float(np.nanmedian(steady)) for times in USUAL)
    return float(np.clip(np.nanquantile(steady, BASELINE_SHARE), low, high))
