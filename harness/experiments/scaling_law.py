"""The Universal Scalability Law: fitted to rates on several numbers of cores, with intervals. Pure.

N cores do `one * N / (1 + contention * (N - 1) + coherency * N * (N - 1))` events per second. Contention is the share
of the work that only one core at a time can do; coherency is the work that each core causes for each other core. Both
are at least 0. Intervals are those of the profile likelihood, for noise that is a share of the rate: they hold every
curve that fits the rates as well as noise allows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log, sqrt
from statistics import fmean

import numpy as np

from harness.measuring.stats import LEVEL, Floats, student

WIDEST = 2.0  # an interval that spans a larger factor is no answer
FEWEST = 3  # numbers of cores: as many as the law has parameters
# The curves that fit are found by grids: each next one covers those of the last one that fit, and a margin around.
GRIDS, STEPS, MARGIN = 8, 60, 0.15
HALF_BOX = 1.0  # of the first grid, at least: half of its side, in logarithms

Rates = Mapping[int, Sequence[float]]  # cores -> the rate of each run


@dataclass(frozen=True)
class Estimate:
    """A figure with its interval at 95 %; without one if there are too few runs."""

    value: float
    low: float | None = None
    high: float | None = None

    @property
    def is_wide(self) -> bool:
        """Return whether the interval is missing, or spans more than a factor of two."""
        return self.low is None or self.high is None or self.high > WIDEST * self.low


@dataclass(frozen=True)
class Law:
    """A fit: the curve that fits best comes first, then all others that fit as well as noise allows."""

    logs: Floats  # the logarithm of the rate of one core, of each curve
    contentions: Floats
    coherencies: Floats
    spare: Floats  # by how much the logarithm of the curve's rate may be off in addition

    @property
    def contention(self) -> Estimate:
        return _span(self.contentions)

    @property
    def coherency(self) -> Estimate:
        return _span(self.coherencies)

    def at(self, cores: float) -> Estimate:
        """Return the rate on so many cores."""
        logs = self.logs + log(cores) - np.log(_loss(cores, self.contentions, self.coherencies))
        low, high = float((logs - self.spare).min()), float((logs + self.spare).max())
        return Estimate(exp(logs[0]), exp(low), exp(high))

    @property
    def peak(self) -> float | None:
        """Return the number of cores beyond which the best curve falls; None if it never does."""
        contention, coherency = float(self.contentions[0]), float(self.coherencies[0])
        return sqrt(max(0.0, 1 - contention) / coherency) if coherency > 0 else None


def _span(values: Floats) -> Estimate:
    return Estimate(float(values[0]), float(values.min()), float(values.max()))


def _loss(cores: float | Floats, contention: Floats, coherency: Floats) -> Floats:
    """Return how many times as long an event takes a core as it takes one that works alone."""
    return np.asarray(1 + contention * (cores - 1) + coherency * cores * (cores - 1))


def fit(rates: Rates) -> Law | None:
    """Fit the law. None: there are fewer than three numbers of cores, or no more than three runs."""
    cores = np.array(sorted(rates), dtype=np.float64)
    runs = np.array([len(rates[int(each)]) for each in cores], dtype=np.float64)
    freedom = int(runs.sum()) - FEWEST
    if len(cores) < FEWEST or freedom < 1:
        return None
    # Logarithms of the time of a core per event, as one mean of each number of cores, and the squares within them.
    logs = [np.log(each) - np.log(np.asarray(rates[int(each)], dtype=np.float64)) for each in cores]
    means = np.array([each.mean() for each in logs])
    within = sum(float(((each - each.mean()) ** 2).sum()) for each in logs)
    corners = cores[[0, len(cores) // 2, -1]]
    centre = (means[[len(cores) // 2, -1]] - means[0])[:, None]
    half = max(HALF_BOX, 4 * sqrt(within / freedom))
    box = np.concatenate([centre - half, centre + half], axis=1)
    allowed = 1 + student(LEVEL, freedom) ** 2 / freedom
    for _ in range(GRIDS):
        contention, coherency = _curves(
            corners, *np.meshgrid(*(np.linspace(low, high, STEPS + 1) for low, high in box))
        )
        off = means[:, None] - np.log(_loss(cores[:, None], contention, coherency))
        mean = (runs[:, None] * off).sum(axis=0) / runs.sum()
        squares = within + (runs[:, None] * (off - mean) ** 2).sum(axis=0)
        fits = np.flatnonzero(squares <= allowed * squares.min())
        fits = fits[np.argsort(squares[fits], kind="stable")]
        found = [np.log(_loss(each, contention[fits], coherency[fits])) for each in corners]
        places = np.array([found[1] - found[0], found[2] - found[0]])
        low, high = places.min(axis=1), places.max(axis=1)
        margin = MARGIN * (high - low) + (box[:, 1] - box[:, 0]) / STEPS
        box = np.stack([low - margin, high + margin], axis=1)
    spare = np.sqrt((allowed * squares.min() - squares[fits]) / runs.sum())
    return Law(-mean[fits], contention[fits], coherency[fits], spare)


def _curves(corners: Floats, middle: Floats, last: Floats) -> tuple[Floats, Floats]:
    """Return the contention and the coherency of the curves through these points of a grid.

    A point is how much longer an event takes on the middle and on the largest number of cores than on the smallest one,
    in logarithms. Noise moves a fit in both directions about equally far there, while contention and coherency replace
    each other. A point that no curve goes through becomes one with nothing below 0.
    """
    first, rows = corners[0], []
    for cores, place in zip(corners[1:], (middle, last), strict=True):
        times = np.exp(place.ravel())
        rows.append((cores - 1 - times * (first - 1), cores * (cores - 1) - times * first * (first - 1), times - 1))
    (a, b, right), (c, d, below) = rows
    with np.errstate(divide="ignore", invalid="ignore"):
        contention, coherency = (right * d - b * below) / (a * d - b * c), (a * below - right * c) / (a * d - b * c)
    finite = np.isfinite(contention) & np.isfinite(coherency)
    return tuple(np.where(finite, np.maximum(each, 0.0), 0.0) for each in (contention, coherency))  # type: ignore[return-value]


# ---------------------------------------------------------------- Without a law


def error_of_a_run(groups: Collection[Sequence[float]]) -> float | None:
    """Return by how much the logarithm of one rate differs from that of its group, at 95 %. All groups share one
    spread, so that few runs suffice. None: no group has two runs.
    """
    freedom = sum(len(group) - 1 for group in groups if group)
    if not freedom:
        return None
    logs = (np.log(np.asarray(group, dtype=np.float64)) for group in groups if group)
    squares = sum(float(((each - each.mean()) ** 2).sum()) for each in logs)
    return student(LEVEL, freedom) * sqrt(squares / freedom)


def mean_of(group: Sequence[float], error: float | None) -> Estimate:
    """Return the geometric mean of rates."""
    return _around(fmean(map(log, group)), None if error is None else error / sqrt(len(group)))


def ratio_of(group: Sequence[float], to: Sequence[float], error: float | None) -> Estimate:
    """Return how many times as fast one group is as another one."""
    apart = None if error is None else error * sqrt(1 / len(group) + 1 / len(to))
    return _around(fmean(map(log, group)) - fmean(map(log, to)), apart)


def _around(logarithm: float, apart: float | None) -> Estimate:
    if apart is None:
        return Estimate(exp(logarithm))
    return Estimate(exp(logarithm), exp(logarithm - apart), exp(logarithm + apart))
