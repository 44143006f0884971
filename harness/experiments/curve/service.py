"""The duration of a batch of n events over all load steps, and the capacity that it predicts as a second estimate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from harness.experiments.curve.plateau import Floats, Measured, Why
from harness.experiments.curve.queue_model import STEP_S, Engines, Machines, late_shares

LEAST_BATCHES = 20
# Least share of its events in a batch's duration, relative to its fixed part. A batch that lasts as long as its
# trigger, whatever its size, does not measure work.
LEAST_FOR_EVENTS = 0.5
# The slowdowns of a machine are measured where batches are about as long as at the answer: near the highest rate of a
# long visit.
NEAR, LONG_S = 0.65, 60.0
DRAWS = 16
# The simulated rates: those where two batches take such a share of the objective; and the lowest rate.
LENGTHS, LOWEST = np.geomspace(0.25, 1.8, 11), 0.4
FORETOLD_S, SETTLED_S = 1300.0, 100.0
STRETCH_S, ROUGH_S, MOMENT_S = 40.0, 20.0, 12.0
SEED = 20_022


@dataclass(frozen=True)
class Service:
    """A batch takes base + each * events. `spread` has the actual durations as shares of that."""

    base_ms: float
    each_ms: float
    spread: Floats

    def most_per_s(self, objective_ms: float) -> float:
        """Return the rate where two consecutive batches take as long as the objective allows: an event that comes just
        after one has begun waits for both.
        """
        return max(0.0, (1 - 2 * self.base_ms / objective_ms) / self.each_ms * 1000)

    def p99_ms(self, rate_per_s: float) -> float:
        """Predict p99 at a rate, where each batch holds the events that arrived during the one before; infinite above
        the capacity.
        """
        left = 1 - rate_per_s / 1000 * self.each_ms
        return 2 * self.base_ms / left if left > 0 else float("inf")


def fitted(measured: Sequence[Measured], without: Sequence[Why] = (Why.WARM_UP, Why.PULSE)) -> Service | None:
    """Fit the line by ratios, so that long batches do not outweigh short ones; None if the durations do not measure
    work.
    """
    warm = [each for each in measured if each.plateau.why not in without and not each.unsound]
    took = np.concatenate([np.zeros(0), *(each.batch_took_ms for each in warm)])
    events = np.concatenate([np.zeros(0), *(each.batch_events for each in warm)])
    told = np.isfinite(took) & (took > 0) & (events > 0)
    took, events = took[told], events[told]
    if len(took) < LEAST_BATCHES:
        return None
    base, each = _line(events, took)
    if each <= 0 or not is_work(base, each, np.quantile(events, 0.99)):
        return None
    return Service(base, each, took / (base + each * events))


def with_pulses(measured: Sequence[Measured]) -> Service | None:
    """Fit including the batches during a burst: the longest of them have the most leverage. The answer does not depend
    on them.
    """
    return fitted(measured, without=(Why.WARM_UP,))


def is_work(base_ms: float, each_ms: float, most_events: float) -> bool:
    """Check if batches take longer with more events."""
    return each_ms * most_events >= LEAST_FOR_EVENTS * base_ms


def _line(events: Floats, took: Floats) -> tuple[float, float]:
    """Two steps, the second one weighted by the prediction of the first: weights by the durations themselves would
    favour short batches.
    """
    weight = 1 / took
    for _ in range(2):
        design = np.column_stack((weight, events * weight))
        (base, each), *_ = np.linalg.lstsq(design, took * weight, rcond=None)
        base = max(0.0, base)
        weight = 1 / np.maximum(base + each * events, took / 10)
    return float(base), float(each)


def slower_a_minute(curve: Service, measured: Sequence[Measured]) -> float:
    """Return how much longer batches of one size took per minute, in logarithms. One step of least squares from the
    curve also adjusts the curve, so that later rates are not mistaken for a drift.
    """
    told = [each for each in _counted(measured) if len(each.batch_took_ms)]
    if not told:
        return 0.0
    took, events = (
        np.concatenate(each) for each in zip(*((v.batch_took_ms, v.batch_events) for v in told), strict=True)
    )
    at_minute = np.concatenate([(v.plateau.from_ms + np.cumsum(v.batch_took_ms)) / 60_000 for v in told])
    foretold_ms, weight = curve.base_ms + curve.each_ms * events, np.sqrt(took)
    design = np.column_stack((1000 / foretold_ms, events * curve.each_ms / foretold_ms, at_minute - at_minute.mean()))
    off = np.log(took / foretold_ms) * weight
    return float(np.linalg.lstsq(design * weight[:, None], off, rcond=None)[0][2])


@dataclass(frozen=True)
class Foretold:
    """The predicted rate at which one in a hundred events takes longer than the objective."""

    rate_per_s: float
    # The same if the machine were always as slow as in its slowest moments.
    least_per_s: float
    # Standard deviations of the logarithm of the machine's speed between blocks of 20 s: of all, and within visits.
    rough: float
    uneven: float


def foretold(curve: Service, measured: Sequence[Measured], objective_ms: float) -> Foretold | None:
    """Simulate the machine's future, whose speed is assembled from observed stretches of 40 s."""
    speeds = _speeds(curve, measured)
    length = int(STRETCH_S / STEP_S)
    begins = np.concatenate(
        [np.zeros(0, dtype=np.int64), *(first + np.arange(n) for first, n in _begins(speeds, length))]
    )
    if not len(begins) or curve.most_per_s(objective_ms) <= 0:
        return None
    speed, draw = np.concatenate(speeds), np.random.default_rng(SEED)
    known = draw.integers(len(begins), size=(DRAWS, max(1, len(speed) // length)))
    long = int(FORETOLD_S / STRETCH_S)
    picked = begins[np.take_along_axis(known, draw.integers(known.shape[1], size=(DRAWS, long)), axis=1)]
    machines = Machines(speed[picked[:, :, None] + np.arange(length)].reshape(DRAWS, -1), lanes_each=len(LENGTHS))
    most = curve.most_per_s(objective_ms)
    offered = np.array([max(curve.most_per_s(share * objective_ms), LOWEST * most) for share in LENGTHS])
    lanes = len(offered) * DRAWS
    engines = Engines(np.full(lanes, curve.base_ms / 1000), np.full(lanes, curve.each_ms / 1000))
    late = late_shares(
        engines, machines, np.tile(offered, DRAWS), objective_ms / 1000, (SETTLED_S, FORETOLD_S - STEP_S)
    )
    rate = float(np.median([_crosses(row, offered) for row in late.reshape(DRAWS, -1)]))
    return Foretold(rate, most * _slowest(speeds), *_rough(speeds)) if np.isfinite(rate) else None


def _slowest(speeds: Sequence[Floats]) -> float:
    """The lowest mean speed over a moment. Rare slowdowns decide an hour, and at least a moment of one was seen."""
    count = int(MOMENT_S / STEP_S)
    done = [np.cumsum(np.append(0.0, speed)) for speed in speeds]
    return float(min(((each[count:] - each[:-count]) / count).min() for each in done if len(each) > count))


def _rough(speeds: Sequence[Floats]) -> tuple[float, float]:
    count = int(ROUGH_S / STEP_S)
    means = [np.log(speed[: len(speed) // count * count].reshape(-1, count).mean(axis=1)) for speed in speeds]
    means = [each for each in means if len(each)]
    within = np.concatenate([each - each.mean() for each in means])
    return float(np.std(np.concatenate(means))), float(np.sqrt((within**2).sum() / max(1, len(within) - len(means))))


def _crosses(late: Floats, rates: Floats) -> float:
    """The rate at which more than one in a hundred events is late."""
    above = np.flatnonzero(late > 0.01)
    if not len(above):
        return float("inf")
    at = int(above[0])
    if not at:
        return float(rates[0])
    low, high = np.log(np.maximum(late[at - 1 : at + 1], 1e-3))
    share = (np.log(0.01) - low) / (high - low)
    return float(rates[at - 1] + share * (rates[at] - rates[at - 1]))


def _begins(speeds: Sequence[Floats], length: int) -> Iterator[tuple[int, int]]:
    """Possible begins of stretches within one visit: the first index, and the number of them."""
    first = 0
    for speed in speeds:
        if len(speed) >= length:
            yield first, len(speed) - length + 1
        first += len(speed)


def _speeds(curve: Service, measured: Sequence[Measured]) -> list[Floats]:
    """The machine's speed in each visit near the answer: predicted by actual duration of batches."""
    counted = _counted(measured)
    long = [each for each in counted if each.plateau.length_s >= LONG_S]
    highest = max((each.plateau.rate_per_s for each in long or counted), default=0.0)
    near = [each for each in counted if each.plateau.rate_per_s >= NEAR * highest and len(each.batch_took_ms)]
    return [_speed(curve, each) for each in near] or [np.zeros(0)]


def _counted(measured: Sequence[Measured]) -> list[Measured]:
    return [each for each in measured if each.plateau.why in (Why.LEVEL, Why.AGAIN) and not each.unsound]


def _speed(curve: Service, visit: Measured) -> Floats:
    until_s = np.cumsum(visit.batch_took_ms) / 1000
    steps = np.arange(0, until_s[-1], STEP_S)
    speed = (curve.base_ms + curve.each_ms * visit.batch_events) / visit.batch_took_ms
    return np.asarray(speed[np.minimum(np.searchsorted(until_s, steps, side="right"), len(speed) - 1)])
