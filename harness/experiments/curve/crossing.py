"""The crossing of the curve of p99 against the rate with the objective: an interval, or the reason why there is none.

An engine's remaining capacity shrinks linearly while the rate grows, and delay is proportional to one over it.
Therefore a line is fitted through 1 / p99 near the objective; its band comes from whole blocks of 20 s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.experiments.curve import labels, service
from harness.experiments.curve.labels import Held, Label
from harness.experiments.curve.plateau import ENDS_MS, Floats, Measured
from harness.experiments.curve.service import Foretold
from harness.util.nearest_rank import index_of

DRAWS = 400
SEED = 20_021
TAIL = 0.025
# The spread of few blocks is too small an estimate: widen that of about six by this factor.
FEW = 1.5
BEYOND = 1.25  # of the highest visited rate
WIDEST = 1.0  # a wider interval is no answer
# A machine has drifted if visits differ by more than this plus so many times the variation within them.
DRIFT, UNEVEN = 0.12, 1.5
SLOWER = 0.04  # a larger change per minute is a drift, too, even if it is hardly visible within visits
# Some minutes show fewer problems than an hour. Margins in the logarithm of the rate: per unit of variation of the
# machine's speed, and without any variation.
ROUGH, UNSEEN = 0.6, 0.035
# The same for engines that report no batches: a minute above the capacity leaves little backlog yet, so that the line
# crosses too high. Low rates show how uneven an engine is, by how much longer its p99 is than its p50 (logarithm).
TOO_HIGH, UNEVEN_LOW = 0.23, 0.17
FAILED_BY = 1.15
LOW = 0.7  # of the highest rate
SHORT = 0.03  # of the objective: ratios of very short delays have little meaning


@dataclass(frozen=True)
class Answer:
    """An interval of rates (events/s), or the reason why it is unknown."""

    low_per_s: float | None
    high_per_s: float | None
    labels: tuple[Label, ...]
    second_way_per_s: float | None  # from the service curve
    drift: float  # by how much batches of one size took longer in one long visit than in another (share)
    why_not: str = ""

    @property
    def width(self) -> float | None:
        return None if self.low_per_s is None or self.high_per_s is None else self.high_per_s / self.low_per_s - 1


def answer(measured: Sequence[Measured], objective_ms: float) -> Answer:
    curve = service.fitted(measured)
    told = service.foretold(curve, measured, objective_ms) if curve else None
    line = _line(list(labels.visits(measured).values()), objective_ms)
    # A line that extrapolates far beyond the visited rates does not show what was sustained below.
    least_per_s = told.least_per_s if told else line[0] if line[1] <= BEYOND * _highest(measured) else np.inf
    known = tuple(_believed(label, least_per_s) for label in labels.labels(measured, objective_ms))
    all_batches, moved = service.with_pulses(measured), drift(measured, curve)
    second = all_batches.most_per_s(objective_ms) if all_batches else None
    low, high, why_not = _interval(measured, known, told, line)
    if not why_not and moved > DRIFT + (UNEVEN * told.uneven if told else 0):
        why_not = f"batches of one size took up to {moved:.0%} longer in one visit than in another"
    slower = service.slower_a_minute(curve, measured) if curve else 0.0
    if not why_not and abs(slower) > SLOWER:
        why_not = f"batches of one size took {np.expm1(slower):+.0%} longer each minute"
    if why_not:
        return Answer(None, None, known, second, moved, why_not)
    return Answer(low, high, known, second, moved)


def _highest(measured: Sequence[Measured]) -> float:
    return max(labels.visits(measured), default=0.0)


def _believed(label: Label, least_per_s: float) -> Label:
    """A rate that was sustained for some minutes, but would not be for an hour, is undecided."""
    if label.held is not Held.YES or not label.rate_per_s > least_per_s:
        return label
    return Label(label.rate_per_s, Held.OPEN, "sustained in the repeats, but by the curve not for long", label.visits)


def _interval(
    measured: Sequence[Measured], known: Sequence[Label], told: Foretold | None, line: tuple[float, float]
) -> tuple[float, float, str]:
    at = list(labels.visits(measured).values())
    if len(at) < 3:
        return 0, 0, "fewer than three rates were tested"
    if told:
        apart = UNSEEN + ROUGH * told.rough
        low, high = min(told.rate_per_s, told.least_per_s) * np.exp(-apart), told.rate_per_s * np.exp(apart)
    else:
        low, high = line
        # A rate may have failed twice by chance, but not far below a sustainable rate.
        high = min([high, *(FAILED_BY * k.rate_per_s for k in known if k.held is Held.NO and k.visits > 1)])
    if not np.isfinite(low):
        return 0, 0, "p99 does not grow with the rate"
    low, high = around(low, high, measured, known)
    if low <= 0 or high / low - 1 > WIDEST:
        return 0, 0, "the interval is wider than an answer may be"
    if high > BEYOND * _highest(measured):
        return 0, 0, "no rate as high was tested"
    return float(low), float(high), ""


def around(low: float, high: float, measured: Sequence[Measured], known: Sequence[Label]) -> tuple[float, float]:
    """Widen the interval: no sustained rate may be above it, no exceeded one below, and undecided ones between these
    two are within.
    """
    long = {
        rate
        for rate, own in labels.visits(measured).items()
        if sum(labels.level_ms(visit) >= labels.LEVEL_MS for visit in own) > 1
    }
    open_ = [label.rate_per_s for label in _open_near(known) if label.rate_per_s in long]
    held, failed = ([k.rate_per_s for k in known if k.held is which] for which in (Held.YES, Held.NO))
    return float(min([low, *open_, *failed])), float(max([high, *open_, *held]))


def _line(at: Sequence[Sequence[Measured]], objective_ms: float) -> tuple[float, float]:
    """The interval without batches, from latencies alone; nan if nothing follows from them."""
    if len(at) < 3:
        return float("nan"), float("nan")
    low, high = _seen(at, objective_ms)
    return low * np.exp(-TOO_HIGH - UNEVEN_LOW * _uneven(at, objective_ms)), high * np.exp(UNSEEN)


def _seen(at: Sequence[Sequence[Measured]], objective_ms: float) -> tuple[float, float]:
    """The crossing of the line through the latencies with the objective, and its band."""
    rates = np.array([visits[0].plateau.rate_per_s for visits in at])
    drawn = _crossings(rates, _drawn(at), _weights(at), objective_ms)
    each = _crossings(rates, _by_visits(at), _weights(at), objective_ms)
    if np.isnan(drawn).mean() > TAIL or np.isnan(each).any():
        return float("nan"), float("nan")
    low, middle, high = np.nanquantile(drawn, (TAIL, 0.5, 1 - TAIL))
    low, high = middle - FEW * (middle - low), middle + FEW * (high - middle)
    return float(min(low, *each)), float(max(high, *each))


def _uneven(at: Sequence[Sequence[Measured]], objective_ms: float) -> float:
    highest = max(visits[0].plateau.rate_per_s for visits in at)
    low = [visit.events for visits in at for visit in visits if visit.plateau.rate_per_s < LOW * highest]
    beside_ms = SHORT * objective_ms
    ratios = ((each.quantile_ms(0.99) + beside_ms) / (each.quantile_ms(0.5) + beside_ms) for each in low)
    return max((float(np.log(ratio)) for ratio in ratios), default=0.0)


def _open_near(known: Sequence[Label]) -> list[Label]:
    """Undecided rates above all sustained ones and below all exceeded ones."""
    held = max((label.rate_per_s for label in known if label.held is Held.YES), default=0.0)
    failed = min((label.rate_per_s for label in known if label.held is Held.NO), default=np.inf)
    return [k for k in known if k.held is Held.OPEN and held < k.rate_per_s < failed]


def _later(visit: Measured) -> NDArray[np.int64]:
    probes, events = visit.probes.quantile_ms(0.99), visit.events.quantile_ms(0.99)
    return visit.probes.blocks if probes > events else visit.events.blocks


def _drawn(at: Sequence[Sequence[Measured]]) -> Floats:
    """p99 of each rate (columns), from bootstrapped blocks."""
    draw = np.random.default_rng(SEED)
    return np.column_stack([_p99_ms(np.concatenate([_later(visit) for visit in visits]), draw) for visits in at])


def _p99_ms(blocks: NDArray[np.int64], draw: np.random.Generator) -> Floats:
    count = len(blocks)
    often = draw.multinomial(count, np.full(count, 1 / count), size=DRAWS)
    return _quantiles_ms(often, blocks)


def _quantiles_ms(often: NDArray[np.int64], blocks: NDArray[np.int64]) -> Floats:
    filled = np.flatnonzero(blocks.any(axis=0))
    least, most = filled[0], filled[-1] + 1
    return np.asarray(ENDS_MS[least + index_of(often @ blocks[:, least:most], 0.99)])


def _by_visits(at: Sequence[Sequence[Measured]]) -> Floats:
    """p99 of each rate in its first visit, and in its last: one came from below, the other from above."""
    return np.array([[labels.p99_ms(visits[which]) for visits in at] for which in (0, -1)])


def _weights(at: Sequence[Sequence[Measured]]) -> Floats:
    return np.array([sum(len(visit.events.blocks) for visit in visits) for visits in at], dtype=np.float64)


def _crossings(rates: Floats, p99_ms: Floats, weights: Floats, objective_ms: float) -> Floats:
    """The crossing of each row. Points far from the objective have little weight; nan if no falling line fits."""
    left = objective_ms / p99_ms
    weight = weights / np.maximum(left, 0.5) ** 2
    weight = weight / weight.sum(axis=1, keepdims=True)
    x, y = (weight * rates).sum(axis=1), (weight * left).sum(axis=1)
    off = rates - x[:, None]
    falls = (weight * off * (left - y[:, None])).sum(axis=1) / (weight * off**2).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        crossing = np.where(falls < 0, x + (1 - y) / falls, np.nan)
    return np.clip(crossing, *_seen_between(rates, left))


def _seen_between(rates: Floats, left: Floats) -> tuple[Floats, Floats]:
    """For each row, the lowest rate that missed the objective, and the highest rate below it. A crossing outside of
    these comes from points far above.
    """
    order = np.argsort(rates)
    missed = left[:, order] < 1
    first = np.where(missed.any(axis=1), missed.argmax(axis=1), len(rates))
    ends = np.concatenate([[0.0], rates[order], [np.inf]])
    return ends[first], ends[first + 1]


def drift(measured: Sequence[Measured], curve: service.Service | None) -> float:
    """Return the largest difference between long visits, relative to the common line through all batches."""
    if curve is None:
        return 0.0
    counted = [visit for own in labels.visits(measured).values() for visit in own if len(visit.batch_took_ms)]
    means = [_mean_off(visit, curve) for visit in counted if labels.level_ms(visit) >= labels.LEVEL_MS]
    return float(np.expm1(max(means) - min(means))) if means else 0.0


def _mean_off(visit: Measured, curve: service.Service) -> float:
    """How much longer the batches took than predicted, each weighted by its length."""
    foretold = curve.base_ms + curve.each_ms * visit.batch_events
    return float(np.log(visit.batch_took_ms.sum() / foretold.sum()))
