"""The rounds of a gate, and the metrics that are compared. Pure.

A round is a burst into each side at the same time, billed to its engine. Other load on the machine affects all sides
alike, so that it cancels in the ratio of two sides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness.model import Progress, Segment, TapeSpec
from harness.util.nearest_rank import of_samples

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


STRETCH_EVENTS, STRETCH_MS = 5_000, 500  # a burst consists of stretches; ms of event time
STRETCHES = 20_000  # no gate sends more
ROUND_CPU_S, LONGEST_CPU_S = 1.0, 6.0  # of each side
# More starts tell more than more rounds of one, so that a start with slow rounds gets fewer of them.
ROUNDS_S, FEWEST_ROUNDS = 60.0, 3
FEW, MORE, MOST = 2, 8, 40  # stretches: of two waves that measure what a round costs, and the most of a round


@dataclass(frozen=True)
class Settings:
    """The settings that are equal for all sides."""

    stretch_events: int = STRETCH_EVENTS
    round_stretches: int = 0  # 0: as many as cost each side ROUND_CPU_S or more
    struck_bursts: int = 12  # at most, until a planned fault has struck and is over
    struck_stretches: int = 20  # in each of those
    warm_up_s: float = 12.0  # in each start
    rounds: int = 6  # at most, in each start
    most_starts: int = 12
    seed: int = 1  # of the gates that a calibration draws

    @property
    def struck_events(self) -> int:
        return self.struck_bursts * self.struck_stretches * self.stretch_events


def of_burst(events: int) -> Settings:
    """Return settings with so many events per round; 0: as many as fit."""
    if not events:
        return Settings()
    stretches = -(-events // STRETCH_EVENTS)
    return Settings(stretch_events=events // stretches, round_stretches=stretches)


def fitting(few_s: float, more_s: float) -> int:
    """Return how many stretches make a round, from the CPU time of the dearest side for FEW and for MORE.

    The time by the clock would make rounds small on a busy machine. An engine with batches has a fixed cost per batch,
    so events should be four fifths of a round's cost: of 70,000 events in a round of Spark, a tenth more changed its
    cost by 1 %.
    """
    each_s = max(LEAST_S, more_s - few_s) / (MORE - FEW)
    once_s = max(0.0, few_s - FEW * each_s)
    events_s = min(max(ROUND_CPU_S - once_s, 4 * once_s), LONGEST_CPU_S)
    return max(1, min(round(events_s / each_s), MOST))


def are_enough(rounds: int, took_s: float) -> bool:
    return rounds >= FEWEST_ROUNDS and took_s > ROUNDS_S


@dataclass(frozen=True)
class Round:
    """One burst into one side."""

    side: str
    number: int
    events: int
    cpu_s: float  # of the engine, from the burst until it was idle again
    compiling_s: float  # the part of it that JIT compiler threads used
    idle_s: float  # how long nothing had been sent to it before ...
    idle_cpu_s: float  # ... and its CPU time meanwhile
    took_ms: float  # from the engine's wake-up until it reported that it was done
    billed_ms: float  # how long its CPU time was counted
    memory_bytes: int  # the peak
    at_ms: float
    p50_ms: float | None = None  # until an event's count was seen; None: not known yet
    p99_ms: float | None = None
    start: int = 1  # of all sides
    quiet_ms: float | None = None  # how much of `billed_ms` it was idle; None: it never was, or an older version
    # Counted, not timed; None: unknown.
    allocated_bytes: int | None = None  # by the threads of its JVMs
    kafka_bytes: int | None = None  # to the broker and from it
    redis_commands: int | None = None  # that write
    checkpoint_bytes: int | None = None  # written to the files of its checkpoint
    state_updates: int | None = None  # rows of its state that were written


ROUNDS = "rounds.jsonl"  # of a gate, in its folder


def kept(path: Path) -> Iterator[Round]:
    """Yield the rounds of all whole lines: a killed gate may have left half a line."""
    text = path.read_bytes() if path.exists() else b""
    for line in text.split(b"\n")[:-1]:
        yield msgspec.json.decode(line, type=Round)


def encoded(rounds: Iterable[Round]) -> bytes:
    return b"".join(msgspec.json.encode(each) + b"\n" for each in rounds)


def tape(spec: TapeSpec, stretches: int, settings: Settings) -> TapeSpec:
    """Return a tape of so many stretches. A tape of fewer is its beginning."""
    rate = settings.stretch_events / STRETCH_MS * 1000
    return replace(spec, profile=(Segment(stretches * STRETCH_MS, rate, rate),), probes=0, warm_up=(), waits=False)


def order(sides: Sequence[str], rounds: int) -> Iterator[tuple[str, ...]]:
    """Yield the sides of each round, in alternating order.

    If sides run one after the other, a machine that gets slower then affects all of them alike.
    """
    for number in range(rounds):
        yield tuple(sides) if number % 2 == 0 else tuple(reversed(sides))


def with_latency(rounds: Sequence[Round], due_us: Ints, latency_ms: Floats) -> list[Round]:
    """Add latencies to the rounds of one side. All events of a burst are due when it begins."""
    made = []
    for each in rounds:
        own_ms = latency_ms[np.abs(due_us / 1000 - each.at_ms) < 1]
        known = len(own_ms) and np.isfinite(own_ms).all()
        p50_ms, p99_ms = of_samples(own_ms, (0.5, 0.99)) if known else (None, None)
        made.append(replace(each, p50_ms=p50_ms, p99_ms=p99_ms))
    return made


def with_state_updates(rounds: Sequence[Round], ends: Sequence[int], lines: Sequence[Progress]) -> list[Round]:
    """The rounds of one side, each with how many rows of its state were updated. It stays None where the engine does
    not say so, and where lines of the round's batches are missing.

    `ends`: so many records lay in the topic at the end of each round. A line belongs to a round by its offsets and not
    by its time, since an engine may be frozen for the next round before it has written the line.
    """
    told = [(sum(line.offsets.values()), line) for line in lines]
    made = []
    for each, end in zip(rounds, ends, strict=True):
        own = [line for done, line in told if end - each.events < done <= end]
        updates = sum(line.state_updates for line in own)
        known = updates and sum(line.rows for line in own) >= each.events
        made.append(replace(each, state_updates=updates) if known else each)
    return made


@dataclass(frozen=True)
class Metric:
    """A metric to compare; lower is better."""

    name: str
    unit: str
    of: Callable[[Round, float], float | None]  # of a round and the cores that its engine uses when idle
    is_of_clock: bool = False  # other load on the machine affects it
    finer: float = 1.0  # its threshold, as a share of the requested one


LEAST_S = 0.01  # the lower limit for CPU times and durations of rounds
LONG_S = 2.0


def _cost(each: Round, idle_cores: float) -> float | None:
    """Subtract what the engine uses when idle, for the time in which it was: while it works it does not poll.

    One that is never idle is taken to be so as soon as it is done. Return None if nothing is left: a difference from
    nothing can't be compared.
    """
    after_ms = each.billed_ms - each.took_ms
    idle_s = max(0.0, after_ms if each.quiet_ms is None else each.quiet_ms) / 1000
    billed_s = each.cpu_s - each.compiling_s - idle_cores * idle_s
    return billed_s / each.events * 1e6 if billed_s >= LEAST_S else None


def _per_million(each: Round, _: float) -> float:
    return each.took_ms / each.events * 1e6


def _counted(each: Round, counted_bytes: int | None) -> float | None:
    return None if not counted_bytes else counted_bytes / 2**20 / each.events * 1e6


def _writes(each: Round, _: float) -> float | None:
    return None if not each.redis_commands else each.redis_commands / each.events * 1e3


def _updates(each: Round, _: float) -> float | None:
    return None if not each.state_updates else each.state_updates / each.events * 1e3


COST = Metric("cost", "CPU-s per million events", _cost)
ALLOCATED = Metric(
    "allocated", "MiB per million events", lambda each, _: _counted(each, each.allocated_bytes), finer=0.1
)
METRICS = (
    COST,
    ALLOCATED,
    Metric("Kafka traffic", "MiB per million events", lambda each, _: _counted(each, each.kafka_bytes)),
    Metric("Redis writes", "commands per thousand events", _writes),
    Metric("checkpoint", "MiB per million events", lambda each, _: _counted(each, each.checkpoint_bytes)),
    Metric("state rows", "rows per thousand events", _updates),
    Metric("memory", "MiB", lambda each, _: each.memory_bytes / 2**20),
    Metric("catch-up", "ms per million events", _per_million, is_of_clock=True),
    Metric("latency p50", "ms", lambda each, _: each.p50_ms, is_of_clock=True),
    Metric("latency p99", "ms", lambda each, _: each.p99_ms, is_of_clock=True),
)


def by_start(rounds: Sequence[Round]) -> Iterator[list[Round]]:
    """Yield the rounds of each start, in order."""
    for start in sorted({each.start for each in rounds}):
        yield [each for each in rounds if each.start == start]


def by_side(
    rounds: Sequence[Round], sides: Sequence[str], metric: Metric, idle: Mapping[str, float]
) -> Mapping[str, list[float]]:
    """Return equally many values of each side, in order; empty lists if any round lacks the metric.

    `idle`: the cores that each side uses when idle, see `idle_of`.
    """
    own = {side: [each for each in rounds if each.side == side] for side in sides}
    count = min(map(len, own.values()))
    values = {side: [metric.of(each, idle[side]) for each in mine[:count]] for side, mine in own.items()}
    told = {side: [value for value in each if value is not None] for side, each in values.items()}
    return told if all(len(each) == count for each in told.values()) else {side: [] for side in sides}


def idle_of(rounds: Sequence[Round], sides: Sequence[str]) -> Mapping[str, float]:
    """Compute the cores that each side uses when idle, from the rounds of all starts: the pauses of one start are few,
    and made three sides of one Spark differ by 10 % that differed by 2 to 3 % otherwise.
    """
    return {side: idle_cores([each for each in rounds if each.side == side]) for side in sides}


def idle_cores(rounds: Sequence[Round]) -> float:
    """Compute the cores that an engine uses without input, from long pauses only.

    In short ones it still works on the round before. An engine that is never idle gets long ones.
    """
    waits = [each for each in rounds if each.idle_s >= LONG_S]
    return median(each.idle_cpu_s / each.idle_s for each in waits) if waits else 0.0
