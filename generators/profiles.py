"""The offered rate over time as a cumulative function; event n is due at its inverse.

A profile is a chain of straight lines. Its integral is piecewise quadratic and has an inverse in closed form, so the
due time of any event is known without computing the events before it. It depends on no sender.

Only + - * / and sqrt are used, which IEEE 754 rounds exactly, so that results are equal on every machine.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray

from harness.model import Segment

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Rounding may put the sum of areas slightly above a whole number of events; this excess is no event.
_HAIR = 1e-6


class Profile:
    """The cumulative rate of a chain of segments."""

    def __init__(self, segments: tuple[Segment, ...]) -> None:
        segments = tuple(segment for segment in segments if segment.duration_ms > 0)
        self._length_us = np.array([s.duration_ms * 1000 for s in segments], dtype=np.int64)
        self._start_us = np.concatenate(([0], np.cumsum(self._length_us)))
        self._rate = np.array([s.start_per_s for s in segments], dtype=np.float64) / 1e6  # events per us
        end_rate = np.array([s.end_per_s for s in segments], dtype=np.float64) / 1e6
        self._slope = (end_rate - self._rate) / self._length_us
        areas = [s.duration_ms * (s.start_per_s + s.end_per_s) / 2000.0 for s in segments]
        self._events = np.concatenate(([0.0], np.cumsum(areas)))

    @cached_property
    def total(self) -> int:
        return int(np.ceil(self._events[-1] - _HAIR))

    @cached_property
    def duration_ms(self) -> int:
        return int(self._start_us[-1]) // 1000

    def cumulative(self, t_us: Ints) -> Floats:
        """Return how many events are due before each time, fractions included."""
        if not len(self._rate):  # a load that was cancelled before its first event
            return np.zeros(len(t_us))
        t = np.clip(t_us, 0, self._start_us[-1])
        segment = np.clip(np.searchsorted(self._start_us, t, side="right") - 1, 0, len(self._rate) - 1)
        within = (t - self._start_us[segment]).astype(np.float64)
        events = self._events[segment] + within * (self._rate[segment] + within * self._slope[segment] / 2.0)
        return np.minimum(events, self._events[segment + 1])

    def inverse(self, n: Ints) -> Ints:
        """Return when each event is due, in whole microseconds. In a segment of rate zero nothing is due."""
        if not len(self._rate):
            return np.zeros(len(n), dtype=np.int64)
        if len(self._rate) == 1:
            return self._within(n.astype(np.float64), 0)
        segment = np.clip(np.searchsorted(self._events, n, side="right") - 1, 0, len(self._rate) - 1)
        return self._within(n.astype(np.float64) - self._events[segment], segment)

    def _within(self, events: Floats, segment: NDArray[np.intp] | int) -> Ints:
        """Solve rate * t + slope * t^2 / 2 = events, in the form that is stable for every slope, zero included."""
        rate, slope = self._rate[segment], self._slope[segment]
        root = np.sqrt(np.maximum(rate * rate + 2.0 * slope * events, 0.0))
        divisor = rate + root
        t_us = np.divide(2.0 * events, divisor, out=np.zeros_like(events), where=divisor > 0.0).astype(np.int64)
        return self._start_us[segment] + np.clip(t_us, 0, self._length_us[segment] - 1)

    def first_due_at(self, t_us: Ints) -> Ints:
        """Return the first event that is due at or after each time; `total` if there is none.

        Exact against `inverse`.
        """
        n = np.clip(np.ceil(self.cumulative(t_us)).astype(np.int64), 0, self.total)
        while (early := (n < self.total) & (self.inverse(n) < t_us)).any():
            n = n + early
        while (late := (n > 0) & (self.inverse(n - 1) >= t_us)).any():
            n = n - late
        return n


def raised(segments: tuple[Segment, ...], from_ms: int, until_ms: int, factor: float) -> tuple[Segment, ...]:
    """Multiply the rate between two times by a factor, and cut the chain there."""
    parts: list[Segment] = []
    start_ms = 0
    for whole in segments:
        stop_ms = start_ms + whole.duration_ms
        cuts = sorted({start_ms, stop_ms, *(cut for cut in (from_ms, until_ms) if start_ms < cut < stop_ms)})
        for low_ms, high_ms in pairwise(cuts):
            times = factor if from_ms <= low_ms < until_ms else 1.0
            rates = [times * _rate_at(whole, at_ms - start_ms) for at_ms in (low_ms, high_ms)]
            parts.append(Segment(high_ms - low_ms, *rates))
        start_ms = stop_ms
    return tuple(parts)


def _rate_at(segment: Segment, at_ms: int) -> float:
    return segment.start_per_s + (segment.end_per_s - segment.start_per_s) * at_ms / segment.duration_ms


def steady(rate_per_s: float, duration_ms: int) -> tuple[Segment, ...]:
    return (Segment(duration_ms, rate_per_s, rate_per_s),)


def ramp(rate_per_s: float, duration_ms: int, start_per_s: float = 0.0) -> tuple[Segment, ...]:
    """Change the rate linearly from the start rate."""
    return (Segment(duration_ms, start_per_s, rate_per_s),)


def steps(rate_per_s: float, duration_ms: int, count: int = 5) -> tuple[Segment, ...]:
    """Raise the rate in equal steps; the last step has the full rate."""
    return tuple(_flat(length, rate_per_s * (i + 1) / count) for i, length in enumerate(_split(duration_ms, count)))


def burst(
    rate_per_s: float, duration_ms: int, factor: float = 5.0, burst_ms: int = 0, count: int = 1
) -> tuple[Segment, ...]:
    """Raise the rate to `factor` times its value in the middle, for a tenth of the duration by default.

    Several bursts are separated by equally long steady parts, as long as those before and after.
    """
    length = burst_ms or max(1, duration_ms // (10 * count))
    first, *others = _split(duration_ms - count * length, count + 1)
    pairs = ((_flat(length, rate_per_s * factor), _flat(steady_ms, rate_per_s)) for steady_ms in others)
    return (_flat(first, rate_per_s), *chain.from_iterable(pairs))


def square(
    rate_per_s: float, duration_ms: int, low_per_s: float = 0.0, half_period_ms: int = 5000
) -> tuple[Segment, ...]:
    """Alternate between high and low rate, beginning with high."""
    starts = range(0, duration_ms, half_period_ms)
    rates = (rate_per_s, low_per_s)
    return tuple(_flat(min(half_period_ms, duration_ms - at), rates[i % 2]) for i, at in enumerate(starts))


def pause_and_drain(rate_per_s: float, duration_ms: int, pause_ms: int = 0) -> tuple[Segment, ...]:
    """Send nothing in the middle, for a third of the duration by default.

    The engine can catch up, and must not close windows that still get events.
    """
    length = pause_ms or max(1, duration_ms // 3)
    before, after = _split(duration_ms - length, 2)
    return (_flat(before, rate_per_s), _flat(length, 0.0), _flat(after, rate_per_s))


PROFILES: dict[str, Callable[..., tuple[Segment, ...]]] = {
    "steady": steady,
    "ramp": ramp,
    "steps": steps,
    "burst": burst,
    "square": square,
    "pause-and-drain": pause_and_drain,
}


def _flat(duration_ms: int, rate_per_s: float) -> Segment:
    return Segment(duration_ms, rate_per_s, rate_per_s)


def _split(duration_ms: int, parts: int) -> list[int]:
    """Split into whole milliseconds, as equal as possible, with the exact sum."""
    return [duration_ms * (i + 1) // parts - duration_ms * i // parts for i in range(parts)]
