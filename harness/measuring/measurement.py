"""The measured values of a run. Raw samples stay in the run's Parquet files; all values here are derived from them.

Every figure has its unit in its name, its count, and its exactness. None means that it could not be measured; a reason
is given next to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum


@dataclass(frozen=True)
class Quantiles:
    """A distribution in ms. Events that were never seen are counted in `censored`, and lie beyond every quantile."""

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
    """One way of measuring latency: from intended times, and for comparison from the time of sending."""

    way: str  # "probes" | "rank-matched" | "final value" | "first seen" | "yahoo"
    corrected: Quantiles
    uncorrected: Quantiles | None
    exactness: str  # a sentence that describes the exactness, with numbers
    tail_is_lower_bound: bool = False


@dataclass(frozen=True)
class OutsideEnds:
    """Latency without events due at the end of a batch, for an engine that reports those times."""

    ends: int  # number of ends during the load
    longest_ms: float
    left_out_share: float  # share of the events
    latency: tuple[Latency, ...]  # empty: withheld
    withheld: str = ""

    def latency_by(self, way: str) -> Latency | None:
        return next((each for each in self.latency if each.way == way), None)


@dataclass(frozen=True)
class Cost:
    """The resources that one part used over load and drain (no warm-up), including ended child processes."""

    part: str  # "engine" | "python workers" | "kafka" | "redis" | "postgresql" | "generator" | "harness"
    cpu_user_s: float
    cpu_system_s: float
    peak_rss_mib: float
    cpu_s_per_million: float  # of the generator by the events of the load, of others also by those of a backlog


@dataclass(frozen=True)
class Steady:
    """The result of the test for a steady state: when (seconds since the load start), and by which bounds."""

    steady: bool
    from_s: float | None
    to_s: float | None
    sentence: str
    bounds: Mapping[str, float]  # name of the slope -> its upper 95 % bound, relative to its reference
    limits: Mapping[str, float]
    slopes: Mapping[str, float] = field(default_factory=dict)  # the estimates to these bounds


@dataclass(frozen=True)
class Observer:
    """The polling of the results, and its cost."""

    period_ms: float
    period_p99_ms: float
    scans: int
    cells_sampled_share: float  # 1.0: every cell was polled
    cpu_share: float  # of one core, observer and harness together


class Lack(StrEnum):
    """The reason why a figure has no value, as shown to a reader; the worst first."""

    NO_END = "for good"  # the measured state lasted to the end
    NEVER = "never"  # it could have happened, and did not
    WITHHELD = "withheld"
    UNKNOWN = "not known"  # it could not happen before the load ended, or was not measured


@dataclass(frozen=True)
class Quantity:
    """One figure of a recovery, a catch-up or a burst. Without a value it has a lack, explained by the note."""

    value: float | None
    note: str = ""
    over_twin: float | None = None  # minus the same figure of the baseline run (same seed, no fault)
    lack: Lack | None = None  # also None in files of older versions

    def text(self, write: Callable[[float], str]) -> str:
        """Format the value with `write`, or show its lack."""
        return write(self.value) if self.value is not None else str(self.lack or "-")


@dataclass(frozen=True)
class Reconfiguration:
    """The effect of restarting an engine that was behind with another run config.

    Some times count from its first start, others from the last progress line under the old config.
    """

    fault: str
    at_s: float  # since its first start: that last line
    to_do: float  # events to process at that time
    away: Quantity  # s until the first progress line under the new config
    before_per_s: Quantity
    after_per_s: Quantity
    paid: Quantity  # s until more was done than the old config would have done
    without: Quantity  # s since its first start until the old config would have caught up


@dataclass(frozen=True)
class CatchUp:
    """How an engine processed the backlog that existed when it started."""

    waiting: int
    oldest_s: float  # age of the oldest waiting event
    started_s: float  # since the load start
    caught_up: Quantity  # s since its start, until it was no further behind than at the end of the load
    fresh: Quantity  # s since its start, until latency was as low as at the end of the load
    per_s: float | None  # until it had caught up
    cpu_s_per_million: float | None  # of the engine, until then
    largest: float | None = None  # the largest number of events to process
    new_orders: tuple[Reconfiguration, ...] = ()


@dataclass(frozen=True)
class Burst:
    """The effect of one burst. Times are in seconds since the load start."""

    from_s: float
    until_s: float
    rate_per_s: float
    times: float  # as a multiple of the rate before it
    area: Quantity  # event-seconds above the band, for events due until the next burst
    back: Quantity  # s after its end, until latency was in the band again


@dataclass(frozen=True)
class Stretch:
    """The figures of a burst, or of the time before, between or after bursts."""

    name: str
    from_s: float
    until_s: float
    figures: Mapping[str, Quantity]  # named with their unit, see harness/measuring/bursting.py


@dataclass(frozen=True)
class Bursts:
    """How an engine handled the bursts of the load."""

    band_ms: Quantity  # of p99 of latency in a second of steady load
    bursts: tuple[Burst, ...]
    stretches: tuple[Stretch, ...]


@dataclass(frozen=True)
class Commit:
    """The state of one batch when its checkpoint was written. None: the engine does not report it."""

    at_s: float  # since the load start
    cells: int
    state_bytes: int | None
    memory_bytes: int | None  # of the state store
    took_ms: int | None  # summed over tasks
    written_bytes: int | None


@dataclass(frozen=True)
class GrowthStep:
    """An equal part of the growth to the largest state: the largest sizes, and the median of its commits."""

    cells: int  # at its end
    commits: int
    state_bytes: int | None
    memory_bytes: int | None
    took_ms: int | None
    written_bytes: int | None


@dataclass(frozen=True)
class Growth:
    """How an engine's state grew while nothing was evicted."""

    commits: tuple[Commit, ...]
    steps: tuple[GrowthStep, ...]


@dataclass(frozen=True)
class StatePart:
    """The state in a part of the load, before or after a fault. None: the engine does not report it."""

    name: str
    commits: int
    cells: int | None  # of the commit nearest to the fault, like the next one
    state_bytes: int | None
    took_ms: int | None  # the median, like the next one
    written_bytes: int | None


@dataclass(frozen=True)
class WindowState:
    """The state of a long window, from which older events leave during the load."""

    commits: tuple[Commit, ...]
    parts: tuple[StatePart, ...]


@dataclass(frozen=True)
class Turn:
    """A part of the load with or without another reader of the results. Times are in seconds since the load start."""

    reads: bool
    from_s: float
    until_s: float
    figures: Mapping[str, float | None]  # named with their unit, see harness/measuring/company.py


@dataclass(frozen=True)
class Company:
    """The cost to the job of another reader of the results."""

    turns: tuple[Turn, ...]
    ratios: Mapping[str, Quantity]  # figure -> value with a reader divided by the value without


@dataclass(frozen=True)
class Partition:
    """The files of one partition of a table."""

    name: str
    files: int
    rows: int
    smallest_bytes: int
    median_bytes: int
    largest_bytes: int


@dataclass(frozen=True)
class TableLayout:
    """The files of a table at the end of the run."""

    files: int
    partitions: int
    most_in_one: int  # files in the partition with the most
    small: int  # files below 1 MiB
    bytes: int
    smallest_bytes: int
    median_bytes: int
    largest_bytes: int
    median_rows: int  # of a file


@dataclass(frozen=True)
class Measurement:
    """All figures of one run; there is none if its results are wrong or its load check is void."""

    events: int
    offered_per_s: float
    processed_per_s: float | None
    catch_up_per_s: float | None
    load_s: float
    ready_s: float
    drain_s: float  # until the last result of the load was seen
    latency: tuple[Latency, ...]
    never_final_share: float | None  # of cells
    dipped_share: float | None  # share of cells whose count decreased at some time
    cost: tuple[Cost, ...]
    checkpoint_bytes: int | None
    gc_s: float | None  # of the engine's JVM
    steady: Steady | None
    observer: Observer | None
    processed_as_seen: bool = False  # True: `processed` is read off the results; False: off the engine's own offsets
    outside_ends: OutsideEnds | None = None  # None: the engine reports no ends of batches
    catch_up: CatchUp | None = None  # None: there was no backlog
    bursts: Bursts | None = None  # None: the load had none
    growth: Growth | None = None  # None: state was evicted during the load, or its size is not reported
    company: Company | None = None  # None: there was no other reader
    table_files: TableLayout | None = None  # None: the results are in no files of a table
    window_state: WindowState | None = None  # None: no full window is required, or its size is not reported
    cost_withheld: str = ""  # why the cost of the engine is left out; "" if it is not
    waited: int = 0  # events of a backlog, which were sent before the load; a cost is by these and `events`

    def latency_by(self, way: str) -> Latency | None:
        return next((each for each in self.latency if each.way == way), None)


@dataclass(frozen=True)
class Recovery:
    """How an engine recovered from one fault.

    Times are in seconds since the load start; quantities count from the strike.
    """

    fault: str
    struck_s: float
    landed_s: float
    until_s: float  # the next fault, or the end of the run
    quantities: Mapping[str, Quantity]  # named with their unit, see harness/measuring/recovery.py


# One row per second since the load start; an unknown column is full of nulls.
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
