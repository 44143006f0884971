"""The band of steady load: how high a figure that is read once a second may be before anybody calls it unusual. Pure.

It is p95 of what the figure was under steady load, from twice to four times its median there, however even or uneven
that was. What is steady, each scenario says: the end of the load after a backlog, the time before the first burst.
"""

from __future__ import annotations

import numpy as np

from harness.measuring.recovery import BASELINE_SHARE
from harness.measuring.stats import Floats

FEWEST_S = 10  # of steady load, to say what is usual
USUAL = (2.0, 4.0)  # times the median


def band(steady: Floats) -> float:
    """Its upper end. NaN where nothing of it is known."""
    if not np.isfinite(steady).any():
        return float("nan")
    low, high = (times * float(np.nanmedian(steady)) for times in USUAL)
    return float(np.clip(np.nanquantile(steady, BASELINE_SHARE), low, high))
