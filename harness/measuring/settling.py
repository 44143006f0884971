"""When a figure is back to normal: it enters a band and stays in it for some time. Pure.

Callers choose the series, the band and the time. A series has one value a second; an unknown value (NaN) is outside.

The band of steady load is p95 of the figure under steady load, but at least twice and at most four times its median
there. Each scenario defines its steady part: the end of the load after a backlog, the time before the first burst.
"""

from __future__ import annotations

import numpy as np

from harness.measuring.stats import Floats

CALM_S = 5  # how long a figure has to stay in its band
BASELINE_SHARE = 0.95
# An engine is behind if it has one second's worth of events more to do than usual. Less is noise of a figure that is
# read once a second.
BEHIND_S = 1.0
FEWEST_S = 10  # of steady load, needed to know the usual values
USUAL = (2.0, 4.0)  # times the median


def settled(values: Floats, most: float, hold: int = CALM_S, start: int = 0) -> int | None:
    """Return the first index, at or after `start`, from which `hold` values are at most `most`; None: there is none."""
    inside = values[start:] <= most
    if len(inside) < hold:
        return None
    calm = np.convolve(inside, np.ones(hold), mode="valid") >= hold
    return start + int(np.argmax(calm)) if calm.any() else None


def band(steady: Floats) -> float:
    """Return the upper limit of the band of steady load; NaN if no value is known."""
    if not np.isfinite(steady).any():
        return float("nan")
    low, high = (times * float(np.nanmedian(steady)) for times in USUAL)
    return float(np.clip(np.nanquantile(steady, BASELINE_SHARE), low, high))
