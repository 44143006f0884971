"""The state of each rate: sustained, exceeded, or undecided. Only bounds and repeated observations decide, never an
estimate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from harness.experiments.curve.plateau import BLOCK_MS, Measured, Why
from harness.measuring.stats import LEVEL, slope

GROWTH = 0.01  # of the offered rate: a larger growth of the backlog is too much
LEVEL_MS = 60_000  # least length of a level visit, and least distance between two
SEED = 20_020
COUNTED = (Why.LEVEL, Why.AGAIN)


class Held(StrEnum):
    YES = "held"
    NO = "failed"
    OPEN = "open"


@dataclass(frozen=True)
class Label:
    rate_per_s: float
    held: Held
    reason: str
    visits: int


def p99_ms(visit: Measured) -> float:
    """Return the higher of both by probes and by all events: neither alone shows that all were in time."""
    return max(visit.probes.quantile_ms(0.99), visit.events.quantile_ms(0.99))


def visits(measured: Sequence[Measured]) -> dict[float, list[Measured]]:
    """Return the visits that count by their rate, the lowest first."""
    found: dict[float, list[Measured]] = {}
    for each in sorted(measured, key=lambda each: (each.plateau.rate_per_s, each.plateau.from_ms)):
        if each.plateau.why in COUNTED and not each.unsound:
            found.setdefault(each.plateau.rate_per_s, []).append(each)
    return found


def labels(measured: Sequence[Measured], objective_ms: float) -> list[Label]:
    at = visits(measured)
    looks = sum(map(len, at.values()))
    always = _at_low_rates(at, looks)
    return [_label(rate, own, objective_ms, looks, always) for rate, own in at.items()]


def _at_low_rates(at: dict[float, list[Measured]], looks: int) -> float:
    """Growth that also occurs at the lower half of the rates is no sign of overload."""
    lower = [visit for own in list(at.values())[: len(at) // 2] for visit in own]
    return max(0.0, float(np.median([least_growth(visit, looks) for visit in lower]))) if lower else 0.0


def _label(rate: float, own: list[Measured], objective_ms: float, looks: int, always: float) -> Label:
    grown = min(least_growth(visit, looks) for visit in own)
    within = [p99_ms(visit) <= objective_ms for visit in own]
    # A visit after a lower rate grows until it has settled: the label needs another visit, or too long a delay.
    if grown > GROWTH + always and (len(own) > 1 or not any(within)):
        return Label(rate, Held.NO, f"at least {grown:.1%} of the offer piles up", len(own))
    if len(own) > 1 and not any(within):
        least = min(p99_ms(visit) for visit in own)
        return Label(rate, Held.NO, f"p99 {least:,.0f} ms or more in each repeat", len(own))
    if why := _why_open(own, within):
        return Label(rate, Held.OPEN, why, len(own))
    return Label(rate, Held.YES, f"p99 {max(p99_ms(visit) for visit in own):,.0f} ms", len(own))


def _why_open(own: list[Measured], within: list[bool]) -> str:
    if len(own) < 2:
        return "tested only once"
    if not all(within):
        return "one repeat meets the objective and another does not"
    if any(disagree(visit) for visit in own):
        return "progress and readers disagree"
    level = [visit for visit in own if level_ms(visit) >= LEVEL_MS]
    apart = len(level) > 1 and level[-1].plateau.from_ms - level[0].plateau.until_ms >= LEVEL_MS
    return "" if apart else "no two repeats of a minute, a minute apart"


def level_ms(visit: Measured) -> int:
    return len(visit.events.blocks) * BLOCK_MS


def least_growth(visit: Measured, looks: int) -> float:
    """Return the lower bound of the backlog's growth as a share of the rate. The confidence level rises with the number
    of visits.
    """
    backlog = visit.backlog[-(level_ms(visit) // 1000) :]
    known = np.isfinite(backlog)
    if known.sum() < BLOCK_MS / 1000:
        return 0.0
    seconds = np.flatnonzero(known)
    fallen = slope(seconds, -backlog[known] / visit.plateau.rate_per_s, SEED, level=1 - (1 - LEVEL) / looks)
    return -fallen.upper


# An event waits about as long as the backlog before it takes.
FAR_APART = 3.0
LEAST_APART_MS = 2000.0


def disagree(visit: Measured) -> bool:
    """Check if the backlog that the engine reports, the latency of events, and that of probes contradict each other."""
    by_readers_ms = visit.events.quantile_ms(0.5)
    by_probes_ms = visit.probes.quantile_ms(0.5)
    known = visit.backlog[np.isfinite(visit.backlog)]
    told_ms = float(known.mean()) / visit.plateau.rate_per_s * 1000 if len(known) else by_readers_ms
    return any(_far(ms, by_readers_ms) for ms in (told_ms, by_probes_ms))


def _far(one_ms: float, other_ms: float) -> bool:
    return abs(one_ms - other_ms) > LEAST_APART_MS and not 1 / FAR_APART < one_ms / other_ms < FAR_APART
