"""The random variation of counts.

The original draws each event's ad and type at random, so that the count of a cell varies like that of a Poisson
distribution, and more if each event was counted several times. The limits are so wide that no
cell of a million right ones is reported as wrong.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from harness.audit.left import Ints

SIGMAS = 6.0
SHARE = 0.02  # a generator may run this much slower, which is no error of the counts
TO_SIGMA = 1.4826  # from the median distance to the median


def limit(count: Ints, sigmas: float = SIGMAS) -> float:
    """Return how much less than the usual cell a whole cell may hold."""
    usual = float(np.median(count))
    seen = TO_SIGMA * float(np.median(np.abs(count - usual)))
    return sigmas * max(float(np.sqrt(max(usual, 1.0))), seen)


def is_low(count: Ints, sigmas: float = SIGMAS) -> NDArray[np.bool_]:
    return np.asarray(count < np.median(count) - limit(count, sigmas))


def by_chance(count: float, share: float = SHARE) -> float:
    """Return how far a sum of counts may be off."""
    return max(share * count, SIGMAS * float(np.sqrt(max(count, 1.0))))
