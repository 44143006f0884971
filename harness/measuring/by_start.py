"""One side by another over several starts of both, of rounds that both did at the same time. Pure.

Two starts of one program differ by more than two of its rounds: memory lies elsewhere, a JVM compiles other things.
Rounds don't average that away, starts do. So each start has one say, the median of its rounds, and the interval is as
wide as starts differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, sqrt
from statistics import fmean, median

import numpy as np
from numpy.typing import NDArray

from harness.measuring.stats import DRAWS, Ratio, student

Floats = NDArray[np.float64]

FEWEST = 2  # one start tells nothing of how far starts differ
# One start in fourteen of a Python process cost 12.5 % less than the others. One like that has no say, where there are
# enough others to know it by: it lies so far from their middle, and so many times as far as they usually do.
FEWEST_AROUND, FAR, TIMES = 5, 0.05, 6.0
USUAL = 1.4826  # by which the median distance becomes a standard deviation


@dataclass(frozen=True)
class ByStart:
    """A ratio, and what it was made of."""

    ratio: Ratio
    starts: tuple[float, ...]  # the ratio of each, in turn
    aside: int | None  # which of them has no say; None: all have
    starts_differ: float  # the standard deviation of a start's logarithm, of those that have a say
    rounds_differ: float  # that of a round's, within its start

    @property
    def freedom(self) -> int:
        return len(self.starts) - (self.aside is not None) - 1


def ratio(starts: Sequence[Sequence[float]], level: float, seed: int) -> ByStart:
    """Of the logarithms of each start's rounds. The bootstrap draws starts, and of each its rounds; it knows of no
    start that was not drawn, which makes it too sure of a few, so that Student's quantile makes it wider."""
    if len(starts) < FEWEST:
        raise ValueError(f"a ratio needs {FEWEST} starts or more, not {len(starts)}")
    seen = [float(median(each)) for each in starts]
    aside = outlier(seen)
    own = [each for place, each in enumerate(starts) if place != aside]
    middle = fmean(value for place, value in enumerate(seen) if place != aside)
    error = float(np.std(_drawn(own, seed))) * sqrt(len(own) / (len(own) - 1))
    far = student(level, len(own) - 1) * error
    within = [np.asarray(each) - median(each) for each in own]
    return ByStart(
        Ratio(exp(middle), exp(middle - far), exp(middle + far), error),
        tuple(map(exp, seen)),
        aside,
        float(np.std([median(each) for each in own], ddof=1)),
        float(np.sqrt(np.mean(np.concatenate(within) ** 2))),
    )


def outlier(seen: Sequence[float]) -> int | None:
    """The one start that has nothing to do with the others; None where there is none, or more than one."""
    if len(seen) < FEWEST_AROUND:
        return None
    apart = [abs(value - median(seen)) for value in seen]
    worst = max(range(len(apart)), key=apart.__getitem__)
    usual = USUAL * median(apart[:worst] + apart[worst + 1 :])
    return worst if apart[worst] > max(FAR, TIMES * usual) else None


def _drawn(starts: Sequence[Sequence[float]], seed: int) -> Floats:
    """The mean over starts, of so many draws."""
    draws = np.random.default_rng(seed)
    redrawn = np.array([_medians(np.asarray(each, dtype=np.float64), draws) for each in starts])
    which = draws.integers(0, len(starts), size=(DRAWS, len(starts)))
    return np.asarray(redrawn[which, draws.integers(0, DRAWS, size=which.shape)].mean(axis=1))


def _medians(rounds: Floats, draws: np.random.Generator) -> Floats:
    return np.asarray(np.median(rounds[draws.integers(0, len(rounds), size=(DRAWS, len(rounds)))], axis=1))
