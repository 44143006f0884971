"""The rounds of a gate, and what is compared of them. Pure.

A round is a burst into one side, billed to its engine. Rounds go forth and back over the sides, so that a machine that
slows down slows all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import hypot
from pathlib import Path
from statistics import median

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness.model import Segment, TapeSpec

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


STRETCH_EVENTS, STRETCH_MS = 25_000, 500  # a burst is made of these; the latter of event time
STRETCHES = 20_000  # no gate sends more
ROUND_S = 4.0  # much longer than what a round takes whatever it holds
PACED_STRETCHES = 8


@dataclass(frozen=True)
class Settings:
    """What all sides meet alike."""

    stretch_events: int = STRETCH_EVENTS
    round_stretches: int = 0  # 0: as many as the base does in ROUND_S
    struck_bursts: int = 12  # at most, until a planned fault has struck and is over
    struck_stretches: int = 4  # in each of those
    warm_up_s: float = 40.0  # of the base; the other sides are sent the same
    most_rounds: int = 40
    seed: int = 1  # of the bootstrap

    @property
    def struck_events(self) -> int:
        return self.struck_bursts * self.struck_stretches * self.stretch_events


def of_burst(events: int) -> Settings:
    """With so many events a round; 0: as it fits."""
    if not events:
        return Settings()
    stretches = -(-events // STRETCH_EVENTS)
    return Settings(stretch_events=events // stretches, round_stretches=stretches)


def fitting(stretches: int, took_s: float, settings: Settings) -> int:
    """How many make a round, by how long so many took the base."""
    return settings.round_stretches or max(1, round(stretches * ROUND_S / took_s))


@dataclass(frozen=True)
class Round:
    """One burst into one side."""

    side: str
    number: int
    events: int
    cpu_s: float  # of the engine, from the burst until it was done
    compiling_s: float  # of that by the threads of a JVM that compile its code
    idle_s: float  # for so long nothing had been sent to it before ...
    idle_cpu_s: float  # ... and this it used meanwhile
    took_ms: float  # from the burst's begin until the engine's own word that it was done
    billed_ms: float  # for how long its CPU was counted
    memory_bytes: int  # the most that it held
    at_ms: float
    p50_ms: float | None = None  # until an event's count was seen; None: not known yet
    p99_ms: float | None = None


ROUNDS = "rounds.jsonl"  # of a gate, in its folder


def kept(path: Path) -> Iterator[Round]:
    """All whole lines: what was killed may have left half a line."""
    text = path.read_bytes() if path.exists() else b""
    for line in text.split(b"\n")[:-1]:
        yield msgspec.json.decode(line, type=Round)


def tape(spec: TapeSpec, stretches: int, settings: Settings) -> TapeSpec:
    """What so many stretches hold. A tape of fewer is its beginning."""
    rate = settings.stretch_events / STRETCH_MS * 1000
    return replace(spec, profile=(Segment(stretches * STRETCH_MS, rate, rate),), probes=0, warm_up=(), waits=False)


def order(sides: Sequence[str], rounds: int) -> Iterator[tuple[str, ...]]:
    """The sides of each round, forth and back."""
    for number in range(rounds):
        yield tuple(sides) if number % 2 == 0 else tuple(reversed(sides))


def with_latency(rounds: Sequence[Round], due_us: Ints, latency_ms: Floats) -> list[Round]:
    """The rounds of one side, each with how long its events took to be seen. All of a burst is due when it begins."""
    made = []
    for each in rounds:
        own_ms = latency_ms[np.abs(due_us / 1000 - each.at_ms) < 1]
        known = len(own_ms) and np.isfinite(own_ms).all()
        made.append(replace(each, p50_ms=at(own_ms, 0.5), p99_ms=at(own_ms, 0.99)) if known else each)
    return made


def at(values: Floats, share: float) -> float:
    return float(np.quantile(values, share))


@dataclass(frozen=True)
class Metric:
    """What is compared; less of it is better."""

    name: str
    unit: str
    of: Callable[[Round, float], float | None]  # with the cores that its engine takes when it is idle
    of_starts: float  # how far two starts of the same differ: the standard deviation of its logarithm
    of_starts_flat: float = 0.0  # and so far at least, in its own unit
    share: float = 0.25  # the quantile of the rounds that is compared
    is_of_clock: bool = False  # what others do on the machine at the same time is in it

    def starts_differ(self, value: float) -> float:
        """As `of_starts`, where it is about so large."""
        return hypot(self.of_starts, self.of_starts_flat / value) if value > 0 else self.of_starts


LEAST_S = 0.01  # no round is cheaper
LONG_S = 2.0
SMOOTH_ROUNDS = 5  # of each side


def _cost(each: Round, idle_cores: float) -> float:
    billed_s = each.cpu_s - each.compiling_s - idle_cores * each.billed_ms / 1000
    return max(LEAST_S, billed_s) / each.events * 1e6


def _per_million(each: Round, _: float) -> float:
    return each.took_ms / each.events * 1e6


# As measured of Quix, Spark and the reference. Memory grows in steps that have nothing to do with how much there is of
# it: one start of Quix has 107 MiB, and the next one 135 or 165. A JVM whose heap is there from the start has the same.
COST = Metric("cost", "CPU-s per million events", _cost, 0.01)
METRICS = (
    COST,
    Metric("memory", "MiB", lambda each, _: each.memory_bytes / 2**20, 0.02, of_starts_flat=20.0),
    Metric("catch-up", "ms per million events", _per_million, 0.04, is_of_clock=True),
    Metric("latency p50", "ms", lambda each, _: each.p50_ms, 0.02, share=0.5, is_of_clock=True),
    Metric("latency p99", "ms", lambda each, _: each.p99_ms, 0.02, share=0.5, is_of_clock=True),
)


def by_side(rounds: Sequence[Round], sides: Sequence[str], metric: Metric) -> Mapping[str, list[float]]:
    """Equally many of each side, in the order in which they were; nothing where a round does not tell."""
    own = {side: [each for each in rounds if each.side == side] for side in sides}
    count = min(map(len, own.values()))
    values = {side: [metric.of(each, idle_cores(mine)) for each in mine[:count]] for side, mine in own.items()}
    told = {side: [value for value in each if value is not None] for side, each in values.items()}
    return told if all(len(each) == count for each in told.values()) else {side: [] for side in sides}


def idle_cores(rounds: Sequence[Round]) -> float:
    """What one engine takes when nothing is sent to it. Of short pauses nothing is believed: in them it still does what
    the round before has left."""
    waits = [each for each in rounds if each.idle_s >= LONG_S] or rounds
    return median(each.idle_cpu_s / each.idle_s for each in waits) if waits else 0.0


def levelled(values: Mapping[str, Sequence[float]]) -> Mapping[str, list[float]]:
    """Without what all sides have in common as time goes by: a JVM that still compiles gets cheaper, a machine that
    gets warm gets dearer. It is the mean of a few rounds of all sides, each beside its own median."""
    logs = {side: np.log(each) for side, each in values.items()}
    common = np.mean([each - np.median(each) for each in logs.values()], axis=0)
    smooth = _running_mean(common)
    return {side: list(np.exp(each - smooth)) for side, each in logs.items()}


def _running_mean(values: Floats) -> Floats:
    """At both ends of fewer."""
    window = np.ones(min(SMOOTH_ROUNDS, len(values)))
    return np.convolve(values, window, "same") / np.convolve(np.ones(len(values)), window, "same")
