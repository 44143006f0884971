"""The effect of a burst on an engine: how soon and how fast its backlog was worked off. Pure.

It is a second estimate of the capacity, within seconds. It is no proof that a rate can be sustained: batches get
cheaper as they grow, and a burst makes them grow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from harness.experiments.curve import labels
from harness.experiments.curve.plateau import Floats, Measured, Why
from harness.measuring.settling import settled

LEAST_TIMES = 1.3  # of the rate before it: else the generator could not send a burst
LEAST_STEPS = 3  # so many batches must end during the burst, or it is unknown when it was worked off


@dataclass(frozen=True)
class Pulse:
    base_per_s: float
    rate_per_s: float
    length_s: float
    # Seconds from the begin of the burst until the backlog was usual again for the rate before. 0: it never exceeded
    # that.
    drained_s: float | None
    done_per_s: float | None  # while the backlog was larger
    why_not: str = ""


def pulses(measured: Sequence[Measured]) -> Iterator[Pulse]:
    for burst, after in pairwise(measured):
        if burst.plateau.why is after.plateau.why is Why.PULSE:
            yield _pulse(burst, after, _usual(measured, after.plateau.rate_per_s))


def _pulse(burst: Measured, after: Measured, usual: float) -> Pulse:
    base, rate = after.plateau.rate_per_s, burst.plateau.rate_per_s
    known = (base, rate, burst.plateau.length_s)
    if why_not := _why_not(burst, after):
        return Pulse(*known, None, None, why_not)
    waiting = _filled(np.concatenate((burst.backlog, after.backlog)))
    offered = np.repeat([rate, base], [len(burst.backlog), len(after.backlog)])
    above = waiting > usual
    if not above.any():
        return Pulse(*known, 0.0, None)
    begun = int(above.argmax())
    ended = settled(waiting, usual, hold=1, start=int(waiting.argmax()))
    if ended is None:
        return Pulse(*known, None, None, f"it was not worked off within {len(waiting)} s")
    done = offered[begun:ended].sum() - (waiting[ended] - waiting[begun])
    return Pulse(*known, float(ended), float(done / (ended - begun)))


def _why_not(burst: Measured, after: Measured) -> str:
    if unsound := burst.unsound or after.unsound:
        return f"it was not sent as planned: {unsound}"
    if burst.plateau.rate_per_s < LEAST_TIMES * after.plateau.rate_per_s:
        return "the generator could send no burst"
    if not np.isfinite(np.concatenate((burst.backlog, after.backlog))).any():
        return "the backlog is not known"
    if len(after.batch_took_ms) and len(burst.batch_took_ms) < LEAST_STEPS:
        return f"fewer than {LEAST_STEPS} batches ended while it lasted"
    return ""


def _usual(measured: Sequence[Measured], base_per_s: float) -> float:
    """The largest backlog at this rate in level visits."""
    levels = [visit.backlog for visit in labels.visits(measured).get(base_per_s, [])]
    return float(np.nanmax(np.concatenate([np.zeros(1), *levels])))


def _filled(waiting: Floats) -> Floats:
    """Unknown seconds are interpolated."""
    known = np.flatnonzero(np.isfinite(waiting))
    return np.asarray(np.interp(np.arange(len(waiting)), known, waiting[known]))
