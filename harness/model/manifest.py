"""The manifest of an engine: how it is started, and what it claims."""

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
ConfigFormat = Literal["json", "yahoo"]
WindowKey = Literal["start", "end"]
TABLES = ("sql", "delta", "iceberg", "parquet")  # the sources whose results are rows of a table


@dataclass(frozen=True)
class SinkClaim:
    """An engine's claims about one of its sinks. The judge holds the engine to them, whatever the engine reports."""

    name: str
    late: Late
    guarantee: Guarantee
    crash_points: tuple[CrashPoint, ...] = ()
    bookkeeping: tuple[str, ...] = ()  # patterns of Redis keys that belong to the engine and hold no results
    final: bool = False  # a result is written once, when the watermark has passed the end of its window
    in_order: bool = False  # outputs of a key leave in order of their events' times
    whole_batches: bool = False  # a reader sees all outputs of a batch at once
    times: tuple[Time, ...] = (EVENT_TIME,)  # the times by which it can count


@dataclass(frozen=True)
class EngineManifest:
    """One system under test: how it is started, and what it claims."""

    id: str
    command: tuple[str, ...]  # argv template; {config} {python} {job} {home} are filled in
    home: str  # the folder of the manifest: the working directory of the engine
    shipped: bool
    sinks: tuple[SinkClaim, ...]  # the first one is the default
    evidence: LateEvidence = "none"  # the source of the exact set of late events
    progress: bool = True  # it writes progress.jsonl, or commits to `progress_group`
    progress_group: str = ""  # the consumer group whose offsets show its progress; {run} and {topic} are filled in
    resumes: bool = True  # it may be killed and restarted
    executors: bool = False  # processes of their own do its work, and it restarts them when they die
    ready_s: float = 120.0  # the deadline for the answer to the opening events
    drain_s: float = 120.0  # the deadline after the last event
    retention_s: float = 0.0  # how long results are kept; 0: forever
    env: Mapping[str, str] = field(default_factory=dict)
    checksum: bool = False  # it can also sum the ids of a cell's events
    history: bool = False  # it reads older events from files that its run config names
    ivy: str = ""  # id of the JVM artifacts that it needs, "" for none
    packages: str = ""  # id of the Python packages that it needs in an environment of its own, "" for ours
    java: tuple[str, ...] = ()  # Java sources that are compiled for it, beside its job or its manifest
    jars_inside: str = ""  # folder of its Python packages with jars that belong to its class path
    archive: bool = False  # its JVM takes the java_options of its run config, and ends in order
    waits_for_services: bool = False  # it may start before Kafka and Redis answer: its run config says when they do
    extends: str = ""  # id of the shipped engine whose job it runs, "" for its own job
    options: Mapping[str, str] = field(default_factory=dict)  # options of its job; --conf overrides them
    understands: tuple[str, ...] | None = None  # the `streamgauge.` options that its job reads; None: not declared
    settings: tuple[str, ...] | None = None  # the settings that reach the engine, such as `trigger` and `master`
    columns: Mapping[str, str] = field(default_factory=dict)  # of a table with results: our name -> its column
    orders: ConfigFormat = "json"  # the format of the run config that {config} names
    results: str = "redis:compact"  # a source, or "kafka:TOPIC"
    group: str = ""  # a consumer group that must start at the beginning of the topic, "" for none
    window_key: WindowKey = "start"  # whether its results name a window by its start or its end
    key: str = ""  # of redis:template
    field: str = ""
    read: tuple[str, ...] = ()  # of command: argv template
    query: str = ""  # of sql: instead of a table
    sums: bool = False  # a cell's value is the sum of all its rows in a table
    states: tuple[str, ...] = ()  # argv template that reads copies of its checkpoints; () for Spark's reader, or none
    build: tuple[str, ...] = ()  # argv template that builds the job from a checkout, () for nothing
    logs: tuple[str, ...] = ()  # patterns of further log files, relative to its home
    early: str = ""  # in words: why counts of an open window can be seen
    workload: str = AD_IMPRESSIONS  # the workload of its job
    program: str = ""  # file of its job, "" for the default name
    path: str = ""  # for a user's own engine: the file that was read, or the job beside it

    @property
    def named(self) -> str:
        """The engine's name on a command line, valid in any folder. The id alone names only a shipped engine."""
        return self.id if self.shipped else self.path or f"{self.home}/manifest.toml"

    @property
    def source(self) -> str:
        """The kind of its results, as in harness/results/registry.py: without a name, such as a topic's."""
        return self.results if self.results.startswith("redis:") else self.results.partition(":")[0]

    @property
    def in_redis(self) -> bool:
        return self.source.startswith("redis:")

    @property
    def in_table(self) -> bool:
        """True if its results are rows of a table."""
        return self.source in TABLES

    @property
    def table(self) -> str:
        """The name of its results' table; "" if a query returns them, or if they are in no table."""
        return self.results.partition(":")[2] if self.in_table else ""

    @property
    def results_topic(self) -> str:
        """The topic of its results; "" if they are elsewhere."""
        return self.results.partition(":")[2] if self.source == "kafka" else ""

    @property
    def plans_afterwards(self) -> bool:
        """A batch is recorded only when it is over, so a batch that a crash cuts off leaves no plan."""
        return self.evidence == "spark-rtm-checkpoint"

    @property
    def simulated(self) -> bool:
        """True for the fake engine, under any name: it has no process, and its Kafka and Redis are lists."""
        return not self.command

    @property
    def job(self) -> str:
        """The engine whose job it runs."""
        return self.extends or self.id

    @property
    def on_spark(self) -> bool:
        """True if it runs in Spark's processes and takes Spark's settings, for every version and job."""
        return self.ivy.partition("@")[0] == "spark"

    @property
    def on_task_managers(self) -> bool:
        """True if its job starts TaskManagers of Flink, as many as the run asks for."""
        return self.job.partition("@")[0] == "flink-standalone"

    @property
    def on_jvm(self) -> bool:
        """True if the manifest shows a JVM. A user's own program may start one that the manifest does not show."""
        return bool(self.ivy) or self.command[:1] in (("{java}",), ("java",))

    @property
    def blind(self) -> str:
        """Why its results can't be polled during a run; "" if they can."""
        return "its results are printed by a command, which is run to wait and in the end" if self.read else ""

    def sink(self, name: str) -> SinkClaim:
        return next(claim for claim in self.sinks if claim.name == name)

    @property
    def batch_sink(self) -> SinkClaim | None:
        """The sink that counts all events, late ones included."""
        return next((claim for claim in self.sinks if claim.late == "keep"), None)
