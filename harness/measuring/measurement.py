"""What a run measured, as values. Raw samples stay in the run's Parquet files; everything here is derived from them.

Every figure carries its unit in its name, its count, and how exact it is. None means: could not be measured, and why
stands beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum


@dataclass(frozen=True)
class Quantiles:
    """A distribution in ms. Never-visible events are counted in `censored`, and lie beyond every quantile."""

    count: int
    censored: int
    mean: float | None
    p50: float | None
    p90: float | None
    p99: float | None
    p999: float | None
    max: float | None


@dataclass(frozen=True)
class Latency:
    """One way of measuring latency: from intended times, and beside it from the moment of sending."""

    way: str  # "probes" | "rank-matched" | "final value" | "first seen" | "yahoo"
    corrected: Quantiles
    uncorrected: Quantiles | None
    exactness: str  # a whole sentence that says how exact this is, with numbers
    tail_is_lower_bound: bool = False


@dataclass(frozen=True)
class OutsideEnds:
    """Latency of what was not due in the end of a batch, of an engine that says when those were."""

    ends: int  # that have to do with the load
    longest_ms: float
    left_out_share: float  # of the events
    latency: tuple[Latency, ...]  # none: withheld
    withheld: str = ""

    def latency_by(self, way: str) -> Latency | None:
        return next((each for each in self.latency if each.way == way), None)


@dataclass(frozen=True)
class Cost:
    """What one part of the run used, over the whole load and drain (no warm-up), dead children included."""

    part: str  # "engine" | "python workers" | "kafka" | "redis" | "generator" | "harness"
    cpu_user_s: float
    cpu_system_s: float
    peak_rss_mib: float
    cpu_s_per_million: float


@dataclass(frozen=True)
class Steady:
    """Whether the run ever got steady, from when to when (seconds since the epoch), and by which bounds."""

    steady: bool
    from_s: float | None
    to_s: float | None
    sentence: str
    bounds: Mapping[str, float]  # name of the slope -> its upper 95 % bound, in the share it is held against
    limits: Mapping[str, float]
    slopes: Mapping[str, float] = field(default_factory=dict)  # the estimates below the bounds


@dataclass(frozen=True)
class Observer:
    """How the results were looked at, and what that cost."""

    period_ms: float
    period_p99_ms: float
    scans: int
    cells_sampled_share: float  # 1.0: every cell was looked at
    cpu_share: float  # of one core, observer and harness together


class Lack(StrEnum):
    """Why such a figure has no value, as a reader sees it; the worst first."""

    NO_END = "for good"  # what it measures lasted until the end
    NEVER = "never"  # it could have come, and did not
    WITHHELD = "withheld"
    UNKNOWN = "not known"  # it could not come, because the load had ended, or was not looked at


@dataclass(frozen=True)
class Quantity:
    """One figure of a recovery, a catch-up or a burst. Without a value it has a lack, and the note says more."""

    value: float | None
    note: str = ""
    over_twin: float | None = None  # less the same of a run with the same seed and no fault
    lack: Lack | None = None  # also None in files of older versions

    def text(self, write: Callable[[float], str]) -> str:
        """Its value as `write` writes it, else what it lacks."""
        return write(self.value) if self.value is not None else str(self.lack or "-")


@dataclass(frozen=True)
class NewOrders:
    """What it was worth to start an engine that was behind anew, with other orders. Some seconds count from its first
    start, the others from the last word of the old orders."""

    fault: str
    at_s: float  # since its first start: that last word
    to_do: float  # events, then
    away: Quantity  # s until the first word of the new ones
    before_per_s: Quantity
    after_per_s: Quantity
    paid: Quantity  # s until more was done than the old ones would have done
    without: Quantity  # s since its first start; the old ones would have had nothing left to do


@dataclass(frozen=True)
class CatchUp:
    """How an engine worked off what was waiting when it started."""

    waiting: int
    oldest_s: float  # so old the oldest of it was
    started_s: float  # since the epoch
    caught_up: Quantity  # s since its start; it had no more to do than in the end of the load
    fresh: Quantity  # s since its start; what came in was as soon to be seen as in the end of the load
    per_s: float | None  # until it had caught up
    cpu_s_per_million: float | None  # of the engine, until then
    largest: float | None = None  # so many events it had to do at the most
    new_orders: tuple[NewOrders, ...] = ()


@dataclass(frozen=True)
class Burst:
    """What one burst of the load did. Seconds since the epoch."""

    from_s: float
    until_s: float
    rate_per_s: float
    times: float  # the rate before it
    area: Quantity  # event-seconds above the band, of what was due from its beginning until the next one's
    back: Quantity  # s after its end; what came in from then on was in the band


@dataclass(frozen=True)
class Stretch:
    """What was seen in a burst, or in the time before, between or after."""

    name: str
    from_s: float
    until_s: float
    figures: Mapping[str, Quantity]  # named with their unit, see harness/measuring/bursting.py


@dataclass(frozen=True)
class Bursts:
    """How an engine bore the bursts of the load."""

    band_ms: Quantity  # of p99 of latency in a second of steady load
    bursts: tuple[Burst, ...]
    stretches: tuple[Stretch, ...]


@dataclass(frozen=True)
class Commit:
    """The state of one batch when it was in the checkpoint. None: the engine does not tell it."""

    at_s: float  # since the epoch
    cells: int
    state_bytes: int | None
    memory_bytes: int | None  # of the store of the state
    took_ms: int | None  # all tasks together
    written_bytes: int | None


@dataclass(frozen=True)
class GrowthStep:
    """An equal part of the way up to the largest state: the largest sizes, and the median of its commits."""

    cells: int  # in its end
    commits: int
    state_bytes: int | None
    memory_bytes: int | None
    took_ms: int | None
    written_bytes: int | None


@dataclass(frozen=True)
class Growth:
    """How the state of an engine grew while nothing left it."""

    commits: tuple[Commit, ...]
    steps: tuple[GrowthStep, ...]


@dataclass(frozen=True)
class Turn:
    """A stretch of the load with another reader of the results, or without. Seconds since the epoch."""

    reads: bool
    from_s: float
    until_s: float
    figures: Mapping[str, float | None]  # named with their unit, see harness/measuring/company.py


@dataclass(frozen=True)
class Company:
    """What another reader of the results cost the job."""

    turns: tuple[Turn, ...]
    ratios: Mapping[str, Quantity]  # by the name of a figure: with a reader, as a multiple of without


@dataclass(frozen=True)
class Measurement:
    """All figures of one run; there is none for a run whose answers are wrong or whose certificate is void."""

    events: int
    offered_per_s: float
    processed_per_s: float | None
    catch_up_per_s: float | None
    load_s: float
    ready_s: float
    drain_s: float  # until the last of the load was to be seen
    latency: tuple[Latency, ...]
    never_final_share: float | None  # of cells
    dipped_share: float | None  # of cells: their count went back at some moment
    cost: tuple[Cost, ...]
    checkpoint_bytes: int | None
    gc_s: float | None  # of the engine's JVM
    steady: Steady | None
    observer: Observer | None
    processed_as_seen: bool = False  # by the results; else by the engine's own offsets
    outside_ends: OutsideEnds | None = None  # the engine tells of no ends of batches
    catch_up: CatchUp | None = None  # nothing was waiting
    bursts: Bursts | None = None  # there were none in the load
    growth: Growth | None = None  # some of the state left it meanwhile, or nobody tells what lay in it
    company: Company | None = None  # nobody else read the results

    def latency_by(self, way: str) -> Latency | None:
        return next((each for each in self.latency if each.way == way), None)


@dataclass(frozen=True)
class Recovery:
    """How an engine came back from one fault. Seconds since the epoch; the quantities' own count from the strike."""

    fault: str
    struck_s: float
    landed_s: float
    until_s: float  # the next fault, or the end of the run
    quantities: Mapping[str, Quantity]  # named with their unit, see harness/measuring/recovery.py


# One row per second of the run, relative to the epoch; a column that could not be known is full of nulls.
TIMELINE = (
    "second",
    "offered_per_s",
    "sent_per_s",
    "processed_per_s",
    "backlog",
    "in_flight",
    "latency_p50_ms",
    "latency_p99_ms",
    "watermark_lag_ms",
    "cpu_engine",
    "cpu_kafka",
    "cpu_redis",
    "cpu_generator",
    "cpu_harness",
    "state_bytes",
)
