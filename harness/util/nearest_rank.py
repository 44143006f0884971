"""The one rule for percentiles of latencies: nearest rank. Pure.

A percentile is the smallest sample such that at least this share of all samples is not above it. So it is always a
value that was seen, and never an interpolated one. Counted samples and histograms follow the same rule.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

_HAIR = 1e-9  # 0.07 * 100 is above 7 as a float, and its rank is 7


def ranks(share: float, counts: ArrayLike) -> NDArray[np.int64]:
    """Return for each number of samples the rank of this percentile, from 1."""
    return np.maximum(1, np.ceil(share * np.asarray(counts) - _HAIR)).astype(np.int64)


def of_samples(samples: ArrayLike, shares: Sequence[float]) -> list[float]:
    """Return percentiles of at least one sample."""
    values = np.sort(np.asarray(samples, dtype=np.float64))
    return [float(values[ranks(share, len(values)) - 1]) for share in shares]


def index_of(counts: ArrayLike, share: float) -> NDArray[np.intp]:
    """Return the index of the percentile, if this many samples lie at each index of the last axis; values ascend."""
    up_to = np.cumsum(counts, axis=-1)
    return np.asarray(np.argmax(up_to >= ranks(share, up_to[..., -1:]), axis=-1))
