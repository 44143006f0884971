"""The common answer of several engine runs: each has an interval of its own, and their ends are averaged.

A rare event occurs in one run and not in another, so that the mean of three is nearer to the truth than each. How far
the ends may be moved inwards for that was found by searches of simulated queues whose truth is known (`proof.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from harness.experiments.curve import crossing, labels
from harness.experiments.curve.crossing import Answer
from harness.experiments.curve.plateau import Measured, Piece, Plateau, Why

APART_MS = 24 * 3600 * 1000  # between the load steps of two runs: longer than any run
LEAST = 2 / 3  # of the runs must have an interval
# How far the ends move inwards, in shares of the mean width.
IN_BELOW, IN_ABOVE = 0.15, 0.05


def apart(number: int, measured: Sequence[Measured]) -> Iterator[Measured]:
    """Move the times of a run far behind those of the runs before: the times of each run begin at zero."""
    for each in measured:
        own, by_ms = each.plateau, number * APART_MS
        moved = replace(
            own, number=number * 1000 + own.number, from_ms=own.from_ms + by_ms, until_ms=own.until_ms + by_ms
        )
        yield replace(each, plateau=moved)


def link_per_s(offered: Sequence[Plateau] | Sequence[Piece]) -> float | None:
    """Return the rate that a run had early and late: the lowest repeated one."""
    return min((each.rate_per_s for each in offered if each.why is Why.AGAIN), default=None)


def linked(own: Sequence[Measured]) -> Sequence[Measured]:
    """Return the visits at the rate that was offered early and late."""
    return labels.visits(own).get(link_per_s([each.plateau for each in own]) or 0.0, [])


def answer(lived: Sequence[Sequence[Measured]], objective_ms: float) -> Answer:
    """Return the answer from the measurements of each run. A single run has its own answer."""
    if len(lived) == 1:
        return crossing.answer(lived[0], objective_ms)
    together = [visit for own in lived for visit in own]
    found = crossing.answer(together, objective_ms)
    each = [crossing.answer(own, objective_ms) for own in lived]
    low, high, why_not = _interval(each)
    if why_not:
        return replace(found, low_per_s=None, high_per_s=None, why_not=why_not)
    low, high = crossing.around(low, high, together, found.labels)
    return replace(found, low_per_s=low, high_per_s=high, why_not="")


def _interval(each: Sequence[Answer]) -> tuple[float, float, str]:
    ends = [(own.low_per_s, own.high_per_s) for own in each if own.low_per_s is not None and own.high_per_s is not None]
    if len(ends) < LEAST * len(each):
        unknown = next(own.why_not for own in each if own.low_per_s is None)
        return 0, 0, f"{len(each) - len(ends)} of {len(each)} lives say nothing: {unknown}"
    lows, highs = np.array(ends).T
    if lows.max() > highs.min():
        return 0, 0, f"one engine run ends at {highs.min():,.0f}/s where another begins at {lows.max():,.0f}/s"
    low, high = lows.mean(), highs.mean()
    return float(low + IN_BELOW * (high - low)), float(high - IN_ABOVE * (high - low)), ""
