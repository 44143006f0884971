"""An engine, and what it claims."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from harness.model.fault import CrashPoint
from harness.model.tape import AD_IMPRESSIONS
from harness.model.times import EVENT_TIME, Time

Late = Literal["drop", "keep"]
Guarantee = Literal["exactly-once", "at-least-once", "at-most-once", "none"]
LateEvidence = Literal["none", "spark-checkpoint", "spark-rtm-checkpoint"]
Orders = Literal["json", "yahoo"]
WindowKey = Literal["start", "end"]


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
    progress: bool = True  # writes progress.jsonl, or commits to the group that is named next
    progress_group: str = ""  # the consumer group whose offsets say how far it is; {run} and {topic} are filled in
    resumes: bool = True  # may be killed and started again
    executors: bool = False  # its work is done by processes of their own, which it starts again when they die
    ready_s: float = 120.0  # how long until the opening events must be answered
    drain_s: float = 120.0  # how long it may take after the last event
    retention_s: float = 0.0  # for so long results are kept; 0: for good
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
    understands: tuple[str, ...] | None = None  # which `streamgauge.` options its job reads; None: it does not say
    settings: tuple[str, ...] | None = None  # which settings reach the engine, `trigger` and `master` among them
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
    path: str = ""  # of a user's own: the file that was read, or the job beside it

    @property
    def named(self) -> str:
        """As a command names it, in any folder. The id alone names only a shipped engine."""
        return self.id if self.shipped else self.path or f"{self.home}/manifest.toml"

    @property
    def source(self) -> str:
        """The kind of its results, as harness/results/registry.py has it: without a name, such as that of a topic."""
        return self.results if self.results.startswith("redis:") else self.results.partition(":")[0]

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
    def on_jvm(self) -> bool:
        """As far as its manifest says: a program of somebody's own may start a JVM without a word of it."""
        return bool(self.ivy) or self.command[:1] in (("{java}",), ("java",))

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
