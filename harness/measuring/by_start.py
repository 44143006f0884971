"""One side by another over several starts of both, of rounds that both did at the same time. Pure.

Two starts of one program differ by more than two of its rounds: memory lies elsewhere, a JVM compiles other things.
Rounds don't average that away, starts do. So each start has one say, the median of its rounds, and the interval is as
wide as starts differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, sqrt
from statistics import fmean, median, stdev

import numpy as np
from numpy.typing import NDArray

from harness.measuring.stats import Ratio, student

Floats = NDArray[np.float64]

DRAWS = 500  # of which the standard deviation alone is taken
FEWEST = 2  # one start tells nothing of how far starts differ
# One start in fourteen of a Python process cost 12.5 % less than the others. One like that has no say, where there are
# enough others to know it by: it lies so far from their middle, and so many times as far as they usually do.
FEWEST_AROUND, FAR, TIMES = 5, 0.05, 6.0
USUAL = 1.4826  # by which the median distance becomes a standard deviation


@dataclass(frozen=True)
class ByStart:
    """A ratio, and what it was made of."""

    estimate: float
    error: float  # of its logarithm: one standard error
    starts: tuple[float, ...]  # the ratio of each, in turn
    aside: int | None  # which of them has no say; None: all have
    starts_differ: float  # the standard deviation of a start's logarithm, of those that have a say
    rounds_differ: float  # that of a round's, within its start

    @property
    def counted(self) -> int:
        """The number of starts that have a say."""
        return len(self.starts) - (self.aside is not None)

    def within(self, level: float) -> Ratio:
        return within(self.estimate, self.error, self.counted, level)


def ratio(starts: Sequence[Sequence[float]], seed: int) -> ByStart:
    """Compare by the logarithms of each start's rounds. The bootstrap draws starts, and the rounds of each."""
    if len(starts) < FEWEST:
        raise ValueError(f"a ratio needs {FEWEST} starts or more, not {len(starts)}")
    seen = [float(median(each)) for each in starts]
    aside = outlier(seen)
    own = [np.asarray(each) for place, each in enumerate(starts) if place != aside]
    middles = [each for place, each in enumerate(seen) if place != aside]
    return ByStart(
        exp(fmean(middles)),
        float(np.std(_drawn(own, seed))) * sqrt(len(own) / (len(own) - 1)),
        tuple(map(exp, seen)),
        aside,
        stdev(middles),
        float(np.sqrt(np.mean(np.concatenate([each - np.median(each) for each in own]) ** 2))),
    )


def within(estimate: float, error: float, starts: int, level: float) -> Ratio:
    """Make the interval by Student's quantile, since few starts show how far starts differ."""
    far = exp(student(level, starts - 1) * error)
    return Ratio(estimate, estimate / far, estimate * far, error)


def outlier(seen: Sequence[float]) -> int | None:
    """The one start that has nothing to do with the others; None where there is none, or more than one."""
    if len(seen) < FEWEST_AROUND:
        return None
    apart = [abs(value - median(seen)) for value in seen]
    worst = max(range(len(apart)), key=apart.__getitem__)
    usual = USUAL * median(apart[:worst] + apart[worst + 1 :])
    return worst if apart[worst] > max(FAR, TIMES * usual) else None


def _drawn(starts: Sequence[Floats], seed: int) -> Floats:
    """The mean over starts, of so many draws."""
    draws = np.random.default_rng(seed)
    which = draws.integers(0, len(starts), size=(DRAWS, len(starts)))
    medians = np.empty(which.shape)
    for place, rounds in enumerate(starts):
        chosen = which == place
        picks = draws.integers(0, len(rounds), size=(int(chosen.sum()), len(rounds)))
        medians[chosen] = np.median(rounds[picks], axis=1)
    return np.asarray(medians.mean(axis=1))
