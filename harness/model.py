"""The nouns of streamgauge as plain frozen values; every other module speaks in them.

Standard library only, no behaviour beyond what a value can say about itself, and nothing here touches the world.
Times are integers with their unit in the name. "Relative" times (`_rel_ms`) count from the run's epoch
(harness/epoch.py).
"""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Literal, get_args

SCHEMA_VERSION = 3  # 3: a run has digests of its files
READABLE_SCHEMAS = range(2, SCHEMA_VERSION + 1)

# An event's id is 48 bits: 12 of the server that sends it, 36 of its index in that server's tape. The last server
# number is kept for the harness' own marks (the opening and the closing events of a run), and the one after the
# ordinary servers for the probes.
INDEX_BITS = 36
INDEX_MASK = (1 << INDEX_BITS) - 1
MARK_SERVER = 4095
MAX_SERVERS = 4094

AD_IMPRESSIONS = "ad_impressions"  # the workload of every run of old, which did not say
DEFAULT_SCENARIO = "ad-impressions"

# Words of which there are a few.
CrashPoint = Literal["c1", "c2", "c3", "c4"]
CRASH_POINTS: tuple[CrashPoint, ...] = get_args(CrashPoint)
HALF_WRITTEN: CrashPoint = "c2"
Late = Literal["drop", "keep"]
Guarantee = Literal["exactly-once", "at-least-once", "at-most-once", "none"]
LateEvidence = Literal["none", "spark-checkpoint", "spark-rtm-checkpoint"]
Orders = Literal["json", "yahoo"]
# By which time an event belongs to a window: its own; when it was handed to Kafka; when the broker appended it; when it
# was processed.
Time = Literal["event", "ingestion", "append", "processing"]
EVENT_TIME: Time = "event"
Cut = Literal["offset", "time"]  # by what files end and Kafka begins, where older events lie in files
Source = Literal["redis:compact", "redis:yahoo", "redis:template", "kafka", "command"]
SOURCES: tuple[Source, ...] = get_args(Source)
WindowKey = Literal["start", "end"]
Client = Literal["confluent", "kafka-python"]
SpellKind = Literal["burst", "silent", "future", "poison", "duplicates", "idle-partition", "skew"]
MarkKind = Literal["opening", "between", "aborted", "closing"]  # faults asked for those in the middle
Blame = Literal["plan", "generator", "producer or Kafka", "engine", "evidence"]
EngineState = Literal[
    "drained",
    "unsettled",  # at its end, but what is missing may only be unseen
    "stuck",
    "crashed",
    "overrun",  # its load was given up: searches of an earlier version did that
    "starved",  # the machine did not let it run
    "no-memory",  # the kernel killed a process to get memory back
    "no-room",  # a disk is as good as full
    "unserved",  # Kafka or Redis was gone, and no planned fault did it
    "gone",  # nothing says what became of it
]

HIDDEN = "***"  # stands for what is never saved or shown
VARIABLE = re.compile(r"\$\{env:([^}]*)\}")


class UsageError(Exception):
    """The user asked for something that cannot be: exit 2. The text is one whole sentence or more."""


class HarnessError(Exception):
    """The harness or the machine under it broke, not the engine: exit 4. The text is one whole sentence or more."""


class Stopped(SystemExit):
    """Somebody ended the program from outside; its exit code is the usual one for that signal."""

    def __init__(self, number: int, *, again: bool = False) -> None:
        super().__init__(128 + number)
        self.exit_code = 128 + number
        self.again = again  # in the middle of the end that an earlier signal had begun
        self.name = "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name
        self.name += ", a second signal" if again else ""


class Exit:
    """Exit codes; the same everywhere, also in the README."""

    PASS, FAIL, USAGE, UNKNOWN, BROKEN = 0, 1, 2, 3, 4


class Outcome(StrEnum):
    """The three answers a check or a run can give. One order of severity everywhere: FAIL > UNKNOWN > PASS."""

    PASS = "PASS"
    UNKNOWN = "UNKNOWN"
    FAIL = "FAIL"

    @property
    def exit_code(self) -> int:
        return {Outcome.PASS: Exit.PASS, Outcome.UNKNOWN: Exit.UNKNOWN, Outcome.FAIL: Exit.FAIL}[self]

    @staticmethod
    def worst(outcomes: list[Outcome]) -> Outcome:
        """Nothing judged is UNKNOWN, never PASS."""
        order = [Outcome.PASS, Outcome.UNKNOWN, Outcome.FAIL]
        return max(outcomes, key=order.index, default=Outcome.UNKNOWN)


@dataclass(frozen=True)
class Segment:
    """A stretch of a profile: the offered rate goes in a straight line from one value to another."""

    duration_ms: int
    start_per_s: float
    end_per_s: float


@dataclass(frozen=True)
class Disorder:
    """The dials of disorder. All zero means none. Shares are probabilities per event, seeded.

    event time = due time - delay - late + skew + the server's clock offset + future
    """

    delay_scale_ms: int = 0  # heavy-tailed delay scale*(1/sqrt(u)-1): median 0.41 x scale
    delay_max_ms: int = 0  # ... its tail is cut here
    skew_min_ms: int = 0  # uniform whole number in [min, max]
    skew_max_ms: int = 0
    late_share: float = 0.0  # this share of events is further late by ...
    late_min_ms: int = 0  # ... a uniform whole number in [min, max]
    late_max_ms: int = 0
    duplicate_share: float = 0.0  # this share of slots sends an earlier event of the same server again
    duplicate_gap: int = 0  # ... from 1 up to so many slots back
    duplicate_max_ms: int = 1000  # ... but none that was due longer ago than this
    silent_servers: int = 0  # so many servers fall silent
    silent_start_ms: int = 0  # ... at this time of the run (staggered a little by the seed)
    silent_ms: int = 0  # ... for this long, and come back with the whole backlog at once
    clock_offset_ms: int = 0  # each server's clock is wrong by a fixed whole number in [-x, +x]
    future_share: float = 0.0  # this share of events is dated ...
    future_ms: int = 0  # ... this far in the future
    poison_share: float = 0.0  # this share of records is not an event at all (bad JSON, null, unknown ad, ...)

    @property
    def reach_ms(self) -> int:
        """The largest distance by which an event's time can lie behind the newest event time sent before it."""
        behind = (self.delay_max_ms if self.delay_scale_ms else 0) + (self.late_max_ms if self.late_share else 0)
        silent = self.silent_ms if self.silent_servers else 0
        future = self.future_ms if self.future_share else 0
        again = self.duplicate_max_ms if self.duplicate_share else 0
        return behind + silent + future + again + self.skew_max_ms - self.skew_min_ms + 2 * self.clock_offset_ms


@dataclass(frozen=True)
class Spell:
    """A stretch of the run in which the input is different in one way: what input faults make of a tape."""

    kind: SpellKind
    from_ms: int  # of due times (idle-partition: of slices), from the first one ...
    until_ms: int  # ... to before this one
    share: float = 0.0  # of the events within it
    ahead_ms: int = 0  # future: the one event at its beginning is dated so far ahead
    factor: float = 1.0  # burst: so many times the rate of the profile
    servers: int = 0  # silent: so many of them


@dataclass(frozen=True)
class TapeSpec:
    """All that decides what is sent; equal specs make equal tapes, byte for byte, on every machine."""

    seed: int
    profile: tuple[Segment, ...]
    servers: int
    slice_ms: int
    partitions: int
    campaigns: int
    ads_per_campaign: int
    disorder: Disorder
    probes: int = 0  # so many further campaigns get one view each ...
    probe_every_ms: int = 10_000  # ... in this length of time, from one further server
    spells: tuple[Spell, ...] = ()
    checksum: bool = False  # the low 48 bits of an event's user id are the event's id, so that a job can sum it
    warm_up: tuple[Segment, ...] = ()  # what is offered before the epoch, as a tape of its own (generators/reel.py)
    waits: bool = False  # ... and lies there when the engine starts: a backlog in Kafka, ...
    history_ms: int = 0  # ... of which the first so long lies in files
    workload: str = AD_IMPRESSIONS  # its id, which decides what the events are
    declaration: str = ""  # of a declared workload the whole of what it declares, "" of a shipped one

    @property
    def load_ms(self) -> int:
        return sum(segment.duration_ms for segment in self.profile)

    @property
    def warm_up_ms(self) -> int:
        return sum(segment.duration_ms for segment in self.warm_up)

    @property
    def warmed_ms(self) -> int:
        """How long the engine is at work when the load begins."""
        return 0 if self.waits else self.warm_up_ms

    @property
    def backlog_ms(self) -> int:
        """Of what waits, so long lies in Kafka alone."""
        return self.warm_up_ms - self.history_ms if self.waits else 0

    @property
    def history_kept_ms(self) -> int:
        """Of the history Kafka has its end too: nobody's retention begins where the files end."""
        return self.history_ms // 4

    @property
    def all_campaigns(self) -> int:
        """To an engine a probe campaign is one like any other: the last ones of the population."""
        return self.campaigns + self.probes

    @property
    def reach_ms(self) -> int:
        """As `Disorder.reach_ms`, with the silences that faults add."""
        return self.disorder.reach_ms + sum(s.until_ms - s.from_ms for s in self.spells if s.kind == "silent")

    @property
    def senders(self) -> int:
        """All servers; the last one sends the probes, where there are any."""
        return self.servers + (1 if self.probes else 0)


@dataclass(frozen=True)
class When:
    """The moment for which a fault waits. `relative`: counted from when it began to wait, not from the start."""

    kind: Literal["now", "point", "batch", "offset", "time"] = "now"
    point: CrashPoint | Literal[""] = ""
    batch: int = 0  # at least so many; of a point: the first batch from this one on that has something to write
    share: float = 0.0  # of all planned records of the load
    seconds: float = 0.0  # since the epoch of the run
    relative: bool = False


@dataclass(frozen=True)
class FaultSpec:
    """One fault as the user wrote it, such as `kill@c3:batch=3`, or a plan of several, such as `kill@t>=5s; ...`."""

    text: str
    action: str = "none"  # "none", the name of a fault, or of a combinator, which has steps
    when: When = When()
    options: Mapping[str, str] = field(default_factory=dict)
    steps: tuple[FaultSpec, ...] = ()

    @property
    def planned(self) -> bool:
        return self.action != "none"

    @property
    def leaves(self) -> tuple[FaultSpec, ...]:
        """The faults themselves, in the order in which they are written."""
        return tuple(leaf for step in self.steps for leaf in step.leaves) if self.steps else (self,)


@dataclass(frozen=True)
class SinkClaim:
    """What an engine says of one of its sinks; the judge holds it to that, and the engine never excuses itself."""

    name: str
    late: Late
    guarantee: Guarantee
    crash_points: tuple[CrashPoint, ...] = ()
    bookkeeping: tuple[str, ...] = ()  # patterns of Redis keys that belong to the engine and hold no results
    final: bool = False  # a result comes out once, when the watermark has passed the end of its window
    in_order: bool = False  # outputs of a key leave in the order of their events' times
    times: tuple[Time, ...] = (EVENT_TIME,)  # by which it can count


@dataclass(frozen=True)
class EngineManifest:
    """One system under test: how it is started and what it claims."""

    id: str
    command: tuple[str, ...]  # argv template; {config} {python} {job} {home} are filled in
    home: str  # the folder of the manifest: the working directory of the engine
    shipped: bool
    sinks: tuple[SinkClaim, ...]  # the first one is the default
    evidence: LateEvidence = "none"  # where the exact late set comes from
    progress: bool = True  # writes progress.jsonl
    resumes: bool = True  # may be killed and started again
    executors: bool = False  # its work is done by processes of their own, which it starts again when they die
    ready_s: float = 120.0  # how long until the opening events must be answered
    drain_s: float = 120.0  # how long it may take after the last event
    env: Mapping[str, str] = field(default_factory=dict)
    checksum: bool = False  # sums the ids of a cell's events beside counting them, where it is asked to
    history: bool = False  # reads older events from files, where its orders name some
    ivy: str = ""  # id of the JVM artifacts that it needs, "" for none
    packages: str = ""  # id of the Python packages that it needs in an environment of its own, "" for ours
    java: tuple[str, ...] = ()  # Java sources that are compiled for it, beside its job or its manifest
    jars_inside: str = ""  # folder of its Python packages with jars that belong to its class path
    archive: bool = False  # its JVM takes the java_options of its orders, and ends in order
    waits_for_services: bool = False  # may be started before Kafka and Redis answer: its orders say when they do
    extends: str = ""  # id of the shipped engine whose job it runs, "" for its own
    options: Mapping[str, str] = field(default_factory=dict)  # what its job is told; --conf wins
    orders: Orders = "json"  # the form of the file that {config} names
    results: str = "redis:compact"  # a source, or "kafka:TOPIC"
    group: str = ""  # a consumer group that is to begin where the topic does, "" for none
    window_key: WindowKey = "start"  # what of a window its results are called by
    key: str = ""  # of redis:template
    field: str = ""
    read: tuple[str, ...] = ()  # of command: argv template
    states: tuple[
        str, ...
    ] = ()  # argv template of what reads copies of its checkpoints; () where Spark does it, or none
    build: tuple[str, ...] = ()  # argv template of what makes the job from a checkout, () for nothing
    logs: tuple[str, ...] = ()  # patterns of further log files, relative to its home
    early: str = ""  # in words: how counts of a window that is still open come to be seen
    workload: str = AD_IMPRESSIONS  # the one that its job is of
    program: str = ""  # file of its job, "" for the one that has its name

    @property
    def source(self) -> Source:
        """Of its results, without the name of a topic."""
        return next((source for source in SOURCES if source == self.results), "kafka")

    @property
    def results_topic(self) -> str:
        """The name of the topic of its results; "" where they are elsewhere."""
        return self.results.partition(":")[2] if self.source == "kafka" else ""

    @property
    def plans_afterwards(self) -> bool:
        """A batch is known only when it is over, so that one which a crash cuts off leaves no plan."""
        return self.evidence == "spark-rtm-checkpoint"

    @property
    def simulated(self) -> bool:
        """It has no process, and its Kafka and Redis are lists: the fake engine, under whatever name."""
        return not self.command

    @property
    def job(self) -> str:
        """The engine whose job it runs."""
        return self.extends or self.id

    @property
    def on_spark(self) -> bool:
        """Made of Spark's processes and open to Spark's settings, whatever the version and the job."""
        return self.ivy.partition("@")[0] == "spark"

    @property
    def blind(self) -> str:
        """Why nobody can look at its results again and again while a run goes on; "" where that can be done."""
        return "its results are printed by a command, which is run to wait and in the end" if self.read else ""

    def sink(self, name: str) -> SinkClaim:
        return next(claim for claim in self.sinks if claim.name == name)

    @property
    def batch_sink(self) -> SinkClaim | None:
        """The one by which it counts all that there is, also what is late."""
        return next((claim for claim in self.sinks if claim.late == "keep"), None)


@dataclass(frozen=True)
class RunSpec:
    """One run with every default resolved. Saved first, and enough to do the run again."""

    scenario: str
    engine: str
    sink: str
    tape: TapeSpec
    window_ms: int
    watermark_ms: int
    disorder_name: str
    late_dropped_max: int | None  # None: any number may be dropped, if each is explained
    fault: FaultSpec
    client: Client = "confluent"
    lag_budget_ms: float = 100.0
    objective_p99_ms: float | None = None  # None: no speed was asked for
    trigger: str = "0 seconds"
    master: str = "local[*]"
    checkpoint: str = ""  # "": a folder of the run
    conf: Mapping[str, str] = field(default_factory=dict)
    kafka: str = ""  # "": embedded
    kafka_config: str = ""  # path of a properties file; never its content
    redis: str = ""  # "": embedded; a password in it is never saved (see `public`)
    reset: bool = False
    web: bool = False
    patience: float = 1.0  # all deadlines of the run are so many times as long
    archive: bool = False  # JVMs of ours start from archives of their classes where there are some
    time: Time = EVENT_TIME
    states: int = 0  # at so many batches its state is kept, and judged too
    seam: Cut = "offset"  # of older events in files
    backfill: str = ""  # the engine that counts all once more afterwards, as a batch; "": none
    backfill_kill: bool = False  # that one is killed when it has written half, and started again
    declared_in: str = ""  # the folder that declared the workload; "": it is a shipped one

    @property
    def workload(self) -> str:
        """The question that is asked."""
        return self.tape.workload

    @property
    def title(self) -> str:
        """What a run of it is called: by its scenario, and first by its workload where that is somebody's own."""
        if not self.declared_in:
            return self.scenario
        return self.workload if self.scenario == DEFAULT_SCENARIO else f"{self.workload}-{self.scenario}"

    def public(self) -> dict[str, Any]:
        """The spec as saved: nothing secret in it."""
        return {**asdict(self), "redis": redacted(self.redis)}


def redacted(address: str) -> str:
    """An address of Redis as it may be saved and shown: without its login and its options, which may hold a password
    too. What is taken from the environment is no secret and stays, so that such an address can be used again."""
    scheme, separator, rest = address.partition("://")
    if not separator:
        return HIDDEN if "@" in address or ":" in address else address
    login, at, place = rest.rpartition("@")
    place, mark, options = place.partition("?")
    if "?" in login:  # nobody can tell where its password ends
        return f"{scheme}://{HIDDEN}"
    login = _unless_secret(login, r"([^:]*:)?\0")
    options = _unless_secret(options, r"\w+=\0(&\w+=\0)*")
    return f"{scheme}://{login}{at}{place}{mark}{options}"


def _unless_secret(text: str, allowed: str) -> str:
    """Hidden unless it has this form, in which a zero byte stands for a variable of the environment."""
    return text if not text or re.fullmatch(allowed, VARIABLE.sub("\0", text)) else HIDDEN


@dataclass(frozen=True)
class KafkaAddress:
    """Where Kafka is, and how each client has to be told so. The mappings may hold secrets: never saved in a run."""

    bootstrap: str
    external: bool = False
    librdkafka: Mapping[str, str] = field(default_factory=dict, repr=False)  # confluent-kafka
    kafka_python: Mapping[str, Any] = field(default_factory=dict, repr=False)  # keyword arguments
    # Spark (prefixed with `kafka.` there), Flink, Kafka Streams
    java: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class RedisAddress:
    """Where Redis is. The address may hold a password: never saved in a run."""

    url: str = field(repr=False)
    external: bool = False


@dataclass(frozen=True)
class LoadStatus:
    """How far the fleet is, in records."""

    intended: int
    sent: int
    acknowledged: int
    finished: bool


@dataclass(frozen=True)
class Progress:
    """One line of an engine's progress: all of the log below `offsets` is done and committed."""

    UNIT = "milliseconds since 1970"  # of `at`

    at_ms: int
    batch: int
    rows: int
    offsets: Mapping[int, int]
    watermark_ms: int = 0  # 0: it does not know
    dropped: int = 0
    took_ms: int | None = None  # what lies behind this line; None: it does not say
    state_bytes: int = 0  # 0: it does not say
    state_cells: int = 0  # rows of the state, 0: it does not say
    memory_bytes: int = 0  # that the store of the state uses, 0: it does not say
    commit_ms: int = 0  # that it took to bring the state of this batch into the checkpoint, all tasks together
    commit_bytes: int = 0  # that were written there
    end_ms: tuple[int, int] | None = None  # between the batch before and this one, when it took no events
    # The first offsets that are not in the state with which its start began, on the first line of that; else nothing.
    restored: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Checkpoint:
    """One checkpoint that is over, as an engine tells it."""

    at_ms: int  # it was begun
    took_ms: int
    size_bytes: int
    in_flight_bytes: int = 0  # kept of what was on its way between two tasks
    failed: bool = False


@dataclass(frozen=True)
class Batch:
    """One micro-batch as the engine's own durable log tells it."""

    batch: int
    ends: Mapping[int, int]  # partition -> first offset that is not in it any more
    drop_watermark_ms: int  # an event of this batch was dropped iff its window's end <= this
    committed: bool = True
    replayed: bool = False
    at_ms: int | None = None  # the time that it gave its events; None: nobody knows
    files: Mapping[int, int] = field(default_factory=dict)  # as `ends`, of what it took from files


@dataclass(frozen=True)
class EarlierRun:
    """A batch that was run and then forgotten: the checkpoint was edited while the engine was down, or a crash came
    before its plan was written, and nobody knows how far it had come."""

    start: int  # the first start of the engine that knew nothing of it any more
    batch: int
    starts: Mapping[int, int]  # partition -> first offset that was in it
    ends: Mapping[int, int]
    drop_watermark_ms: int
    committed: bool  # else some or all of it may never have been written


@dataclass(frozen=True)
class FileSeam:
    """Older events lie in files, and most of them nowhere else."""

    ends: tuple[int, ...]  # by partition the first record that is in no file
    begins: tuple[int, ...]  # ... and the first one that Kafka still has
    until_ms: int | None = None  # before that moment an event counts from the files, later from Kafka; None: by `ends`


@dataclass(frozen=True)
class BatchLog:
    """Evidence that narrows [must, may]; `complete` is False when a piece of it is missing, and `note` says which."""

    batches: tuple[Batch, ...]
    drops_late: bool
    complete: bool
    note: str = ""
    earlier: tuple[EarlierRun, ...] = ()  # what they wrote to the results is there all the same
    seam: FileSeam | None = None  # None: nothing lay in files


@dataclass(frozen=True)
class KeptState:
    """A copy of an engine's state, as it was when a batch was committed."""

    number: int  # of the run's states, from 1
    batch: int
    ends: tuple[int, ...]  # by partition the first offset that is not in the batch any more
    watermark_ms: int  # what ends by then, the batch has evicted
    size_bytes: int  # of the copy


@dataclass(frozen=True)
class Mark:
    """An event of the harness itself: opening (proves that the engine answers) or closing (moves the watermark on)."""

    id: int
    campaign: int  # of the workload's keys: the number of one
    partition: int
    event_time_ms: int
    kind: MarkKind
    # By these a codec tells marks apart. In runs of old all marks were of the first user on the first page.
    user: int = 0
    page: int = 0


@dataclass(frozen=True)
class FaultReport:
    """What became of one planned fault. `landed` without `proof` does not exist."""

    spec: FaultSpec
    landed: bool
    healed: bool
    proof: str
    at_ms: int = 0  # when it was done
    batch: int | None = None
    replayed: bool | None = None  # None: not applicable at this point or for this engine
    reachable: bool = True  # False: the engine has no such point; prints n/a, never PASS
    landed_ms: int = 0  # when its effect was seen
    healed_ms: int = 0  # when it was undone, and seen to be
    colour: str = "tab:red"
    refused: str = ""  # how the engine came to a stop with what was done to it, so that it had to be undone
    ignored: str = ""  # what of a change was without effect
    # Of an engine that was changed: the first offset of each partition that is not in the state with which it began,
    # and the first one that the old job can't have written.
    restored: tuple[int, ...] = ()  # by partition; (): nobody knows
    written: tuple[int, ...] = ()
    stateless: bool = False  # the old job left no state that could be copied


@dataclass(frozen=True)
class EngineReport:
    """How the engine itself fared."""

    state: EngineState
    detail: str
    restarts: int = 0
    last_lines: tuple[str, ...] = ()
    log: str = ""  # the file, below the run, in which they are
    advice: tuple[str, ...] = ()  # lines for its manifest


@dataclass(frozen=True)
class Backfill:
    """How a batch fared that counted all once more, after the stream."""

    engine: str
    broke_off: str  # why it has no answer; "": it has
    took_ms: int  # from its first start until all was counted
    cpu_s: float  # of all its starts
    stream_cpu_s: float  # of the stream since its last start
    killed: str = ""  # what was done to it when it had written half; "": it was let be
    stream_took_ms: int = 0  # from the stream's last start until it was done; 0: nobody noted it


@dataclass(frozen=True)
class LastWords:
    """What an engine's log says of the reason why it does not go on."""

    log: str  # below the run
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Certificate:
    """Did the generator keep its schedule? Apart from the verdict: sending late does not make a count wrong."""

    valid: bool
    reasons: tuple[str, ...]
    slices: int
    intended: int
    sent: int
    acknowledged: int
    lag_ms: Mapping[str, float]  # p50, p99, p99.9, max over slices
    budget_ms: float


@dataclass(frozen=True)
class Witness:
    """One wrong thing, as small as it can be said."""

    cell: str  # "campaign 17 (uuid), window 12:00:10" or another subject
    expected: str
    seen: str
    detail: str
    event_ids: tuple[str, ...] = ()
    batches: tuple[int, ...] = ()
    from_ms: int | None = None  # when it went wrong: at some time from here ...
    until_ms: int | None = None  # ... to here; None: nobody knows


@dataclass(frozen=True)
class CheckResult:
    """The answer of one check. `word` names the kind of wrong (lost, duplicated, ...), empty when there is none."""

    name: str
    outcome: Outcome
    sentence: str
    word: str = ""
    count: int = 0
    blame: Blame | Literal[""] = ""
    witnesses: tuple[Witness, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """The answer of a run."""

    outcome: Outcome
    sentence: str
    slack: int  # how many events could be missing without being noticed; 0 = the verdict is to the single event
    checks: tuple[CheckResult, ...]
    totals: Mapping[str, int]

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(check.word for check in self.checks if check.word and check.outcome is not Outcome.PASS)
