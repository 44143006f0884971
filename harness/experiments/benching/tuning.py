"""The Spark job's stages, each done in several ways, all side by side in one run: what docs/tuning.md is made of.

Every variant is a fresh process that reads the same topic from its beginning to its end, and counts only if its
results are right. A stage is tried with the best of the stages before it. In the end reading alone, the textbook job
and the best are run in turns, so that a drift of the machine meets all three. Wall times of a shared machine mean
little: CPU seconds decide.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import psutil

from harness.clock import Clock
from harness.engines.config import EngineConfig
from harness.engines.manifest import jobs_folder
from harness.engines.process import without_other_engines
from harness.engines.spark import checkpoint as checkpoints
from harness.experiments.benching import tuning_topic as topic
from harness.experiments.benching.tuning_threads import ORDER, Threads, spent, threads_of
from harness.install import jvm
from harness.model import AD_IMPRESSIONS, HarnessError, KafkaAddress, RedisAddress
from harness.observe import counts_only
from harness.origin import ROOT
from harness.services import owners
from harness.services.children import Child, spawn
from harness.services.kafka import EmbeddedKafka
from harness.services.redis import EmbeddedRedis, connect
from harness.wait import wait_until
from harness.watching import clock_watch
from workloads.registry import results_of

WORTH = 0.05  # what is cheaper by less may be so by chance: the way that the job has stays
DEADLINE_S = 600.0
STOP_DEADLINE_S = 30.0

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
SHUFFLE = "spark.sql.shuffle.partitions"
PARSER = "streamgauge.parser"
WRITER = "streamgauge.writer"
LIMIT = "streamgauge.source.maxOffsetsPerTrigger"
JAVA = "spark.driver.extraJavaOptions"
TRIGGER = "trigger"  # not an option of Spark, but a key of the job's orders
_STATE = "org.apache.spark.sql.execution.streaming.state."
HDFS, ROCKSDB = _STATE + "HDFSBackedStateStoreProvider", _STATE + "RocksDBStateStoreProvider"

Options = Mapping[str, str]


@dataclass(frozen=True)
class Size:
    """How much is measured. The compiler of the JVM is busy for the first millions of events, whatever the way."""

    events: int
    batches: int
    rounds: int  # of reading alone, textbook and best


FULL, QUICK = Size(3_000_000, 10, 3), Size(300_000, 4, 1)


@dataclass(frozen=True)
class Way:
    """One way of one stage."""

    stage: str
    name: str
    options: Options = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class Measured:
    """What one process took. Steady: in the second half of the events, when the JVM is warm."""

    stage: str
    name: str
    right: bool
    steady_per_s: float
    steady_cpu_s_per_million: float
    whole_cpu_s_per_million: float
    wall_s: float
    threads: Mapping[str, float]  # group -> CPU seconds per million events, steady; empty where it can't be told


@dataclass(frozen=True)
class Mark:
    """How far a variant was at one moment."""

    at_s: float
    cpu_s: float
    events: int
    threads: Threads = field(default_factory=dict)


TEXTBOOK = Way("whole job", "textbook", {PARSER: "from_json", PROVIDER: HDFS, SHUFFLE: "200"})
READ_ONLY = Way("whole job", "read only", {PARSER: "read only"})
BEST = Way("whole job", "best of each")
# The first way of each stage is how the textbook does it.
STAGES: Mapping[str, Sequence[Way]] = {
    stage: tuple(Way(stage, name, options) for name, options in ways.items())
    for stage, ways in {
        "parse": {
            name: {PARSER: name}
            for name in ("from_json", "once", "prefilter", "pattern", "get_json_object", "substring")
        },
        "partitions": {f"{count} of the shuffle": {SHUFFLE: str(count)} for count in (200, 1, 2, 4)},
        "state provider": {
            "HDFSBacked": {PROVIDER: HDFS},
            "RocksDB": {PROVIDER: ROCKSDB},
            "RocksDB, changelog": {PROVIDER: ROCKSDB, CHANGELOG: "true"},
        },
        "trigger": {
            "0 s": {TRIGGER: "0 seconds"},
            "2 s": {TRIGGER: "2 seconds"},
            "0 s, half the batch": {LIMIT: "half"},
        },
        "sink batching": {name: {WRITER: name} for name in ("collect", "arrow", "partitions", "single cells")},
        "collector": {"G1": {}, "Parallel": {JAVA: "-XX:+UseParallelGC"}, "Serial": {JAVA: "-XX:+UseSerialGC"}},
    }.items()
}
# Faster or not, these give other rows than from_json for records with escapes, other orders or spaces.
INEXACT = frozenset({"get_json_object", "substring"})
# What the job does where the tuning has not come to yet.
DEFAULTS: Options = {PARSER: "prefilter", SHUFFLE: "2", PROVIDER: ROCKSDB, TRIGGER: "0 seconds", WRITER: "collect"}

Run = Callable[[Way, Options], Measured]


def tune(run: Run, rounds: int) -> Iterator[Measured]:
    """All variants in their order; each stage with the best of those before it."""
    best, newest = dict(DEFAULTS), None
    for ways in STAGES.values():
        found: list[tuple[Way, Measured]] = []
        for way in ways:
            # What is the best already was measured in the stage before.
            known = newest if {**best, **way.options} == best else None
            measured = replace(known, stage=way.stage, name=way.name) if known else run(way, {**best, **way.options})
            found.append((way, measured))
            yield measured
        kept, newest = best_of(found)
        best |= kept.options
    for _ in range(rounds):
        yield run(READ_ONLY, {**best, **READ_ONLY.options})  # whatever else is set, it is set for both
        yield run(TEXTBOOK, TEXTBOOK.options)
        yield run(BEST, best)


def best_of(found: Sequence[tuple[Way, Measured]]) -> tuple[Way, Measured]:
    """The least CPU of the ways that are right for every record; the job's own if that is hardly more."""
    fit = [(way, measured) for way, measured in found if measured.right and way.name not in INEXACT]
    if not fit:
        raise HarnessError(f"Every way of the stage {found[0][0].stage!r} counts wrong, so that none can be kept.")
    least = min(fit, key=lambda pair: pair[1].steady_cpu_s_per_million)
    enough = least[1].steady_cpu_s_per_million / (1 - WORTH)
    own = [pair for pair in fit if is_own(pair[0]) and pair[1].steady_cpu_s_per_million <= enough]
    return own[0] if own else least


def is_own(way: Way) -> bool:
    """Does the job do it this way?"""
    return all(DEFAULTS.get(key) == value for key, value in way.options.items())


def measure(way: Way, begin: Mark, first: Mark, last: Mark, right: bool) -> Measured:
    events, seconds = last.events - first.events, last.at_s - first.at_s
    return Measured(
        stage=way.stage,
        name=way.name,
        right=right,
        steady_per_s=events / seconds,
        steady_cpu_s_per_million=(last.cpu_s - first.cpu_s) * 1e6 / events,
        whole_cpu_s_per_million=last.cpu_s * 1e6 / last.events,
        wall_s=last.at_s - begin.at_s,
        threads={
            group: cpu_s * 1e6 / events
            for group, cpu_s in spent(first.threads, last.threads, last.cpu_s - first.cpu_s).items()
        },
    )


@dataclass(frozen=True)
class Summary:
    """Medians of the repeats."""

    textbook: float
    best: float
    read_only: float

    @property
    def gain(self) -> float:
        return self.textbook / self.best

    @property
    def over_reading(self) -> float:
        return self.best / self.read_only


def summary(found: Sequence[Measured], figure: Callable[[Measured], float]) -> Summary:
    def median(name: str) -> float:
        return statistics.median(figure(each) for each in found if each.name == name)

    return Summary(median(TEXTBOOK.name), median(BEST.name), median(READ_ONLY.name))


def lines(found: Sequence[Measured]) -> Iterator[str]:
    """The tables of docs/tuning.md, and what they come to."""
    textbook = summary(found, lambda each: each.steady_cpu_s_per_million).textbook
    own = {(way.stage, way.name) for ways in STAGES.values() for way in ways if is_own(way)}
    yield "| stage | way | right | events/s | CPU-s per M events | of the textbook's | with the start |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for each in found:
        ratio = each.steady_cpu_s_per_million / textbook
        figures = f"{each.steady_cpu_s_per_million:.2f} | {ratio:.2f} | {each.whole_cpu_s_per_million:.2f}"
        name = f"{each.name}, the job's" if (each.stage, each.name) in own else each.name
        yield f"| {each.stage} | {name} | {_told(each)} | {each.steady_per_s:,.0f} | {figures} |"
    cpu = summary(found, lambda each: each.steady_cpu_s_per_million)
    speed = summary(found, lambda each: each.steady_per_s)
    yield ""
    yield (
        f"best against textbook: {1 / speed.gain:.2f} times the events/s, {cpu.gain:.2f} times the events per "
        f"CPU-second; {cpu.over_reading:.2f} times the CPU of reading alone "
        f"(medians of {sum(each.name == BEST.name for each in found)})"
    )
    yield from _profile([each for each in found if each.threads])


def _profile(found: Sequence[Measured]) -> Iterator[str]:
    """Where the CPU of the best goes, beside that of reading alone."""
    if not found:
        return
    yield ""
    yield "| threads | best: CPU-s per M events | share | read only: CPU-s per M events |"
    yield "| --- | --- | --- | --- |"
    whole = summary(found, lambda each: sum(each.threads.values())).best
    for group in ORDER:
        cpu = summary(found, partial(_cpu_of, group))
        yield f"| {group} | {cpu.best:.2f} | {cpu.best / whole:.0%} | {cpu.read_only:.2f} |"


def _cpu_of(group: str, each: Measured) -> float:
    return each.threads[group]


def _told(each: Measured) -> str:
    if each.name == READ_ONLY.name:
        return "-"
    if each.name in INEXACT:
        return "here" if each.right else "no"
    return "yes" if each.right else "NO"


def tuning(quick: bool, say: Callable[[str], None]) -> Iterator[Measured]:
    """Everything, on services of our own."""
    size = QUICK if quick else FULL
    folder = owners.lease_folder(Path(tempfile.mkdtemp(prefix="streamgauge-tuning-")))
    broker, redis = EmbeddedKafka(folder, jvm.jars("services"), jvm.java()), EmbeddedRedis(folder)
    try:
        variants = _Variants(folder, broker.start(), redis.start(), size, say)
        yield from tune(variants.run, size.rounds)
    finally:
        redis.stop()
        broker.stop()
        owners.release_folder(folder)


class _Variants:
    """Runs ways as processes of their own, on a topic that is written once."""

    def __init__(
        self, folder: Path, kafka: KafkaAddress, redis: RedisAddress, size: Size, say: Callable[[str], None]
    ) -> None:
        self._folder, self._kafka, self._redis, self._say = folder, kafka, redis, say
        self._tape = topic.make_tape(size.events)
        self._expected = topic.expected(self._tape)
        self._batch = size.events // size.batches
        self._count = 0
        say(f"writing {self._tape.total:,} events")
        topic.fill(self._tape, kafka)

    def run(self, way: Way, options: Options) -> Measured:
        self._prepare_redis()
        self._count += 1
        folder = self._folder / f"variant-{self._count}"
        folder.mkdir()
        clock = Clock()
        begin, first_look = Mark(clock.now_us() / 1e6, 0.0, 0), clock.read()
        child = self._start(folder, self._config(folder, options))
        try:
            first = self._await(child, folder, self._tape.total // 2)
            last = self._await(child, folder, self._tape.total)
        finally:
            child.stop(STOP_DEADLINE_S)
        clock_watch.refuse_stepped(first_look, clock.read(), f"{way.stage}: {way.name}")
        measured = measure(way, begin, first, last, way == READ_ONLY or self._is_right())
        self._say(
            f"{way.stage}: {way.name}: {measured.steady_per_s:,.0f}/s, "
            f"{measured.steady_cpu_s_per_million:.2f} CPU-s per M ({_told(measured)})"
        )
        return measured

    def _start(self, folder: Path, config: EngineConfig) -> Child:
        environment = {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(ROOT), "TMPDIR": str(folder)}
        return spawn(
            [sys.executable, str(jobs_folder(AD_IMPRESSIONS) / "spark_variants.py"), str(config.write(folder))],
            name=folder.name,
            log=folder / "log",
            env={**without_other_engines(os.environ), **environment},
            cwd=ROOT,
        )

    def _config(self, folder: Path, options: Options) -> EngineConfig:
        limits = {LIMIT: str(self._batch // 2 if options.get(LIMIT) == "half" else self._batch)}
        return EngineConfig(
            run=folder.name,
            kafka=self._kafka,
            topic=topic.TOPIC,
            redis=self._redis,
            window_ms=topic.WINDOW_MS,
            watermark_ms=10_000,
            checkpoint=str(folder / "checkpoint"),
            progress_path=str(folder / "progress.jsonl"),
            crash_path=str(folder / "crash"),
            sink="absolute",
            trigger=options.get(TRIGGER, DEFAULTS[TRIGGER]),
            options={**{key: value for key, value in options.items() if key != TRIGGER}, **limits},
            jars=tuple(map(str, sorted(jvm.jars("spark").glob("*.jar")))),
        )

    def _prepare_redis(self) -> None:
        with connect(self._redis) as client:
            client.flushall()
            client.mset(results_of(self._tape.spec).tables.texts)

    def _await(self, child: Child, folder: Path, events: int) -> Mark:
        """The batch that was the newest when at least so many events were done."""
        checkpoint = folder / "checkpoint"

        def mark() -> Mark | None:
            if not child.alive():
                raise HarnessError(f"{folder.name} ended with exit code {child.returncode()}. {child.last_words()}")
            newest = checkpoints.newest_committed(checkpoint)
            if newest is None or sum(newest[1].values()) < events:
                return None
            at_s = (checkpoint / "commits" / str(newest[0])).stat().st_mtime
            return Mark(at_s, _cpu_s(child.pid), sum(newest[1].values()), threads_of(child.pid))

        return wait_until(
            mark, deadline_s=DEADLINE_S, what=f"{events:,} events in {folder.name}", state=child.last_words
        )

    def _is_right(self) -> bool:
        with connect(self._redis) as client:
            return counts_only(client, results_of(self._tape.spec).keys) == self._expected


def _cpu_s(pid: int) -> float:
    """Of a process and all that came from it, the ended ones included."""
    process, total = psutil.Process(pid), 0.0
    for each in (process, *process.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):  # its parent's account has it
            times = each.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total
