"""Statistics of a few kinds of figures. Pure: arrays in, values out; each bootstrap takes its seed.

Percentiles come from raw samples and are never averaged. Comparisons over repeats use one value per round, because
samples within a round are correlated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import atan, cos, exp, lgamma, log, log1p, pi, sin, sqrt, tan
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from harness.measuring.measurement import Quantiles
from harness.util.nearest_rank import ranks

Floats = NDArray[np.float64]

DRAWS = 2000
LEVEL = 0.95
HALVES = 40


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95 % confidence interval; a single round has no interval."""

    median: float
    low: float | None
    high: float | None
    rounds: int


def quantiles(samples: ArrayLike, censored: int = 0) -> Quantiles:
    """Compute quantiles of raw samples.

    Samples that were never seen lie beyond all others: a quantile among them is None, and so is the mean.
    """
    values = np.sort(np.asarray(samples, dtype=np.float64))
    return of_ascending(values, lambda: float(values.mean()), censored)


class Ascending(Protocol):
    """Samples in ascending order."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> float: ...


def of_ascending(values: Ascending | Floats, mean_of: Callable[[], float], censored: int) -> Quantiles:
    """Compute quantiles of samples in ascending order."""

    def at(share: float) -> float | None:
        rank = int(ranks(share, len(values) + censored))
        return float(values[rank - 1]) if rank <= len(values) else None

    mean = mean_of() if len(values) and not censored else None
    return Quantiles(len(values), censored, mean, at(0.5), at(0.9), at(0.99), at(0.999), at(1.0))


def merged(rounds: Sequence[ArrayLike], censored: int = 0) -> Quantiles:
    """Compute quantiles of the raw samples of all rounds together."""
    arrays = [np.asarray(each, dtype=np.float64) for each in rounds]
    return quantiles(np.concatenate([np.empty(0), *arrays]), censored)


def median_interval(values: Sequence[float], seed: int, draws: int = 10 * DRAWS) -> Interval:
    """Compute the median over rounds and its bootstrap interval."""
    rounds = np.asarray(values, dtype=np.float64)
    if len(rounds) < 2:
        return Interval(float(np.median(rounds)), None, None, len(rounds))
    picks = np.random.default_rng(seed).integers(0, len(rounds), size=(draws, len(rounds)))
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(np.median(rounds[picks], axis=1), (tail, 1 - tail))
    return Interval(float(np.median(rounds)), float(low), float(high), len(rounds))


def median_intervals(rounds: Sequence[Mapping[str, float]], seed: int) -> dict[str, Interval]:
    """Compute the interval of each figure over the rounds that have it."""
    names = dict.fromkeys(name for each in rounds for name in each)
    return {name: median_interval([each[name] for each in rounds if name in each], seed) for name in names}


@dataclass(frozen=True)
class Ratio:
    """A ratio of two figures, with its interval at the requested level."""

    estimate: float
    low: float
    high: float
    error: float  # of its logarithm: one standard error


def student(level: float, freedom: int) -> float:
    """Return the two-sided quantile of Student's t.

    A mean lies within this many standard errors at this level, if the errors are estimated from few values.
    """
    return sqrt(freedom) * tan(_root(lambda share: _student_within(share, freedom) - level) * pi / 2)


def student_chance(errors: float, freedom: int) -> float:
    """Return the probability that a mean of nothing lies more than so many standard errors above 0."""
    inside = _student_within(atan(abs(errors) / sqrt(freedom)) * 2 / pi, freedom)
    return (1 - inside) / 2 if errors >= 0 else (1 + inside) / 2


def _student_within(share: float, freedom: int) -> float:
    """Abramowitz and Stegun, 26.7.3 and 26.7.4; `share` is the angle as a share of a right one."""
    angle = share * pi / 2
    term = cos(angle) if freedom % 2 else 1.0
    terms = 0.0 if freedom == 1 else term
    for n in range(2 + freedom % 2, freedom - 1, 2):
        term *= (n - 1) / n * cos(angle) ** 2
        terms += term
    whole = sin(angle) * terms
    return (angle + whole) * 2 / pi if freedom % 2 else whole


def holm(chances: Sequence[float], alpha: float) -> list[float]:
    """Return the level of each of several tests, so that together they err no more often than one at `alpha`.

    `chances` are p-values. The smallest is tested at the strictest level; at the first failure all larger ones fail
    too.
    """
    asked, of = [0.0] * len(chances), 0.0
    failed = False
    for place, which in enumerate(sorted(range(len(chances)), key=chances.__getitem__)):
        if not failed:
            of = alpha / (len(chances) - place)
        failed = failed or chances[which] > of
        asked[which] = of
    return asked


def binomial_bounds(found: int, of: int, level: float = LEVEL) -> tuple[float, float]:
    """Return the exact interval (Clopper and Pearson) of a share from `found` out of `of`."""
    tail = (1 - level) / 2
    low = 0.0 if found == 0 else _root(lambda share: _at_least(found, of, share) - tail)
    high = 1.0 if found == of else _root(lambda share: _at_least(found + 1, of, share) - (1 - tail))
    return low, high


def _at_least(found: int, of: int, share: float) -> float:
    """Return the probability of this many or more."""
    ways = (lgamma(of + 1) - lgamma(n + 1) - lgamma(of - n + 1) for n in range(found, of + 1))
    return sum(exp(way + n * log(share) + (of - n) * log1p(-share)) for n, way in enumerate(ways, found))


def _root(rises: Callable[[float], float]) -> float:
    """Find by bisection where the function passes zero between 0 and 1."""
    low, high = 0.0, 1.0
    for _ in range(HALVES):
        middle = (low + high) / 2
        low, high = (middle, high) if rises(middle) < 0 else (low, middle)
    return (low + high) / 2


@dataclass(frozen=True)
class Slope:
    """The slope of a straight line, per unit of x, and its one-sided upper bound."""

    estimate: float
    upper: float


def slope(
    x: ArrayLike,
    y: ArrayLike,
    seed: int,
    *,
    draws: int = DRAWS,
    period: int = 1,
    beside: ArrayLike | None = None,
    level: float = LEVEL,
) -> Slope:
    """Fit by least squares; the bound comes from a moving-block bootstrap of the residuals.

    Neighbouring seconds of a backlog are correlated; blocks preserve that, so the bound is not too narrow. With a
    `period` (in points), a periodic component is removed first: the teeth of a saw are no growth. A component
    proportional to `beside` is removed too; the bound widens if `beside` is itself a trend.
    """
    xs, ys = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if len(xs) < 3:
        raise ValueError(f"a slope needs at least 3 points, not {len(xs)}")
    phases = period if len(xs) >= 3 * period else 1
    others = [] if beside is None else [np.asarray(beside, dtype=np.float64)]
    design = np.column_stack(
        [*(each - each.mean() for each in (xs, *others)), np.eye(phases)[np.arange(len(xs)) % phases]]
    )
    solve = np.linalg.pinv(design)
    fitted = solve @ ys
    residuals = (ys - design @ fitted) * np.sqrt(len(xs) / max(1, len(xs) - design.shape[1]))
    errors = _resampled(residuals, seed, draws) @ solve[0]
    return Slope(float(fitted[0]), float(fitted[0] + np.quantile(errors, level)))


def _resampled(residuals: Floats, seed: int, draws: int) -> Floats:
    """Draw `draws` series of the original length, each built from blocks of it."""
    count, length = len(residuals), _block_length(residuals)
    starts = np.random.default_rng(seed).integers(0, count - length + 1, size=(draws, -(-count // length)))
    index = starts[:, :, None] + np.arange(length)
    return np.asarray(residuals[index.reshape(draws, -1)[:, :count]])


def _block_length(residuals: Floats) -> int:
    """Return the usual count^(1/3), longer for a more correlated series, but at most a quarter of it."""
    spread = float(residuals @ residuals)
    memory = float(residuals[1:] @ residuals[:-1]) / spread if spread > 0 else 0.0
    stretch = ((1 + memory) / (1 - memory)) ** (2 / 3) if 0 < memory < 1 else 1.0
    return int(np.clip(np.ceil(len(residuals) ** (1 / 3) * stretch), 1, max(1, len(residuals) // 4)))
