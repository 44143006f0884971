"""Find bursts in the offered load: times with a rate far above the one before. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from harness.model import Segment

HIGHER = 2.0  # multiple of the rate before


@dataclass(frozen=True)
class Surge:
    """One burst. Times are in seconds since the load start."""

    from_s: float
    until_s: float
    rate_per_s: float  # the highest
    before_per_s: float
    steady_s: float  # since when the rate before the burst had been constant


@dataclass(frozen=True)
class _Level:
    """A segment with its times."""

    from_s: float
    until_s: float
    start_per_s: float
    end_per_s: float

    @property
    def rates(self) -> set[float]:
        return {self.start_per_s, self.end_per_s}


def surges(segments: Sequence[Segment]) -> tuple[Surge, ...]:
    """Find bursts. A burst must end, and must not follow a pause."""
    found: list[Surge] = []
    begun: Surge | None = None
    for before, level in pairwise(_levels(segments)):
        if begun is None:
            if before.end_per_s > 0 and level.start_per_s >= HIGHER * before.end_per_s:
                begun = Surge(level.from_s, level.until_s, max(level.rates), before.end_per_s, before.from_s)
        elif level.start_per_s >= HIGHER * begun.before_per_s:
            begun = replace(begun, until_s=level.until_s, rate_per_s=max(begun.rate_per_s, *level.rates))
        else:
            found.append(begun)
            begun = None
    return tuple(found)


def _levels(segments: Sequence[Segment]) -> list[_Level]:
    """Merge neighbours with the same constant rate."""
    levels: list[_Level] = []
    at_s = 0.0
    for segment in segments:
        level = _Level(at_s, at_s + segment.duration_ms / 1000, segment.start_per_s, segment.end_per_s)
        if levels and len(levels[-1].rates | level.rates) == 1:
            levels[-1] = replace(levels[-1], until_s=level.until_s)
        else:
            levels.append(level)
        at_s = level.until_s
    return levels
