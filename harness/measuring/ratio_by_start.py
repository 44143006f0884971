"""Compare sides over several starts of all of them, with rounds that they ran at the same time. Pure.

Two starts of a program differ more than two of its rounds: memory is laid out differently, a JVM compiles other code.
More rounds do not average this out, more starts do. So each start contributes one value per side, and the interval
reflects the difference between starts.

Code that is still cold and a busy machine make a round dearer for all sides. So each round is related to the median of
its sides, and a side's value in a start is the median over its rounds: one odd round of one side changes neither. All
sides together show how much starts differ (randomised blocks, with starts as blocks), because with three starts the
difference of two sides alone is known too badly: Student's factor at 98 % is 7.0 with 2 degrees of freedom, and 3.7
with 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, sqrt
from statistics import median

import numpy as np
from numpy.typing import NDArray

from harness.measuring.stats import Ratio, student

Floats = NDArray[np.float64]
Contrast = tuple[float, ...]  # a weight for each side; together they are 0

FEWEST = 2  # one start does not show how much starts differ
# One start in fourteen of a Python process cost 12.5 % less than the others. Such an outlier is left out if there are
# enough other starts to recognise it: its distance from their median must exceed FAR, and TIMES their usual distance.
FEWEST_AROUND, FAR, TIMES = 5, 0.05, 6.0
USUAL = 1.4826  # factor from the median distance to a standard deviation
FAR_MORE = 4.0  # times the rest's standard deviation: a comparison that varies so much is judged by itself


@dataclass(frozen=True)
class ByStart:
    """A ratio, and the values behind it."""

    estimate: float
    error: float  # of its logarithm: one standard error
    freedom: int  # the degrees of freedom behind the error
    starts: tuple[float, ...]  # the ratio of each, in order
    aside: int | None  # the outlier that is left out; None: none is
    starts_differ: float  # the standard deviation of a start's logarithm, without the outlier
    rounds_differ: float  # the standard deviation of a round's logarithm within its start

    @property
    def counted(self) -> int:
        """The number of starts that have a say."""
        return len(self.starts) - (self.aside is not None)

    def within(self, level: float) -> Ratio:
        return within(self.estimate, self.error, self.freedom, level)


def compare(starts: Sequence[Floats], contrasts: Sequence[Contrast], far: float = FAR) -> tuple[ByStart, ...]:
    """Estimate each contrast of the sides. A start holds the logarithms of all sides' rounds, one row for each side.

    `far`: an outlier is farther from the others. A start that is one for one contrast is left out of all.
    """
    if len(starts) < FEWEST:
        raise ValueError(f"a ratio needs {FEWEST} starts or more, not {len(starts)}")
    related = [each - np.median(each, axis=0) for each in starts]
    values = np.array([np.median(each, axis=1) for each in related])
    seen = [values @ np.asarray(each) for each in contrasts]
    aside = next((odd for each in seen if (odd := outlier(each.tolist(), far)) is not None), None)
    kept = np.array([place != aside for place in range(len(starts))])
    return tuple(
        ByStart(
            exp(float(own[kept].mean())),
            *_error(values[kept], own[kept], weights),
            tuple(map(exp, own)),
            aside,
            float(np.std(own[kept], ddof=1)),
            _rounds_differ([each for each, keeps in zip(related, kept, strict=True) if keeps], weights),
        )
        for own, weights in zip(seen, contrasts, strict=True)
    )


def _error(values: Floats, own: Floats, weights: Contrast) -> tuple[float, int]:
    """Return the standard error of a contrast and its degrees of freedom, from the differences of all sides.

    If its own differ far more than the rest do, the rest proves nothing about it.
    """
    starts, sides = values.shape
    length = float(np.linalg.norm(weights))
    of_all, of_own = float((_residuals(values) ** 2).sum()), float(((own - own.mean()) ** 2).sum()) / length**2
    of_rest = (of_all - of_own) / max(1, sides - 2)
    is_alike = sides > 2 and of_own <= FAR_MORE**2 * of_rest
    squares, freedom = (of_all, (starts - 1) * (sides - 1)) if is_alike else (of_own, starts - 1)
    return length * sqrt(squares / freedom / starts), freedom


def ratio(starts: Sequence[Sequence[float]]) -> ByStart:
    """Compare two sides by the logarithms of the ratios of their rounds."""
    return compare([np.array([each, np.zeros(len(each))]) for each in starts], [(1.0, -1.0)])[0]


def _residuals(values: Floats) -> Floats:
    """Return what neither its start nor its side explains of each value."""
    return np.asarray(values - values.mean(axis=1, keepdims=True) - values.mean(axis=0) + values.mean())


def _rounds_differ(starts: Sequence[Floats], weights: Contrast) -> float:
    own = [np.asarray(weights) @ each for each in starts]
    return float(np.sqrt(np.mean(np.concatenate([each - np.median(each) for each in own]) ** 2)))


def within(estimate: float, error: float, freedom: int, level: float) -> Ratio:
    """Compute the interval with Student's quantile, because few starts show how much starts differ."""
    far = exp(student(level, freedom) * error)
    return Ratio(estimate, estimate / far, estimate * far, error)


def outlier(seen: Sequence[float], far: float = FAR) -> int | None:
    """Return the start that is far from all others; None if there is none, or more than one."""
    if len(seen) < FEWEST_AROUND:
        return None
    apart = [abs(value - median(seen)) for value in seen]
    worst = max(range(len(apart)), key=apart.__getitem__)
    usual = USUAL * median(apart[:worst] + apart[worst + 1 :])
    return worst if apart[worst] > max(far, TIMES * usual) else None
