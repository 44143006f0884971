"""Drives `backlog`: lets Spark fill a new topic with the backlog of a tape, and deletes the topic unless it then holds
each record once.
"""

from __future__ import annotations

import math
import re
import resource
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from generators.by_partition import KEY, VALUE, Partition
from generators.spark_plan import Plan
from harness.config import masters, plan
from harness.engines import environments
from harness.engines import manifest as manifests
from harness.engines.spark import executors
from harness.engines.spark.own_job import ENGINE, SparkJob
from harness.host import disk_space
from harness.host.disk_space import NoRoomError, size_in_words
from harness.kafka_log import against_plan
from harness.kafka_log.against_plan import Compared
from harness.kafka_log.recount import Span
from harness.metering.job_cost import JobCost, Used
from harness.model import (
    EngineManifest,
    HarnessError,
    KafkaAddress,
    RunSpec,
    SinkClaim,
    TapeSpec,
    UsageError,
    is_remote_master,
)
from harness.runner.screen import sent_so_far
from harness.services import children, kafka, kafka_security, keeper
from harness.services.addresses import is_loopback
from harness.services.owners import lease_folder, release_folder
from harness.terminal import console
from harness.terminal.command_end import state_folder
from harness.terminal.progress_lines import Facts
from harness.util.texts import many, shown
from harness.util.wait import wait_until
from workloads.registry import oracle_of

# A backlog does not depend on engine and sink, and Spark makes it also for a workload without a job of Spark's.
NOBODY = EngineManifest(
    ENGINE, (), "", shipped=True, sinks=(SinkClaim("none", "keep", "none"),), checksum=True, ivy=ENGINE
)
TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")  # Kafka's rule
PER_RECORD = 12  # bytes of a record in the log beside key and value, with its share of batches and indexes
PER_REPLICA = 1_000_000  # least size of the files of a partition
POLL_S = 2.0
ASK_S = 6.0  # how often Kafka is asked for its offsets, which costs CPU
STALLED_S = 600.0  # without a further record


@dataclass(frozen=True)
class Asked:
    """A backlog, and the topic for it."""

    spec: RunSpec
    kafka: KafkaAddress
    topic: str
    epoch_ms: int

    @property
    def tape(self) -> TapeSpec:
        return self.spec.tape

    @property
    def plan(self) -> Plan:
        return Plan(self.tape, self.epoch_ms)


@dataclass(frozen=True)
class Filled:
    """The records that were written, and their cost."""

    records: Mapping[int, int]  # by partition
    used: Used

    @property
    def total(self) -> int:
        return sum(self.records.values())


@dataclass(frozen=True)
class Checked:
    """Each partition against its plan, and what that cost."""

    partitions: Sequence[Compared]
    used: Used

    @property
    def total(self) -> int:
        return sum(each.records for each in self.partitions)

    @property
    def others(self) -> list[Compared]:
        """The partitions that are not as planned."""
        return [each for each in self.partitions if each.first >= 0]


def resolve(scenario: str, flags: Mapping[str, Any], topic: str, until_ms: int | None, now_ms: int) -> Asked:
    """Read the scenario and the flags. No engine is asked for, and a master elsewhere needs no Redis here."""
    name, keys = plan.read_scenario(scenario)
    keys = {"late_dropped_max": "any", **keys, "fault": "none", "sink": "", "requires": []}
    elsewhere = {"master": flags["master"]} if _is_elsewhere(flags.get("master", "")) else {}
    flags = {key: value for key, value in flags.items() if key not in elsewhere}
    spec, _ = plan.resolve(name, keys, flags, lambda *_: NOBODY)
    spec = replace(spec, **elsewhere)
    return Asked(spec, address_of(spec), topic, epoch_of(spec, until_ms, now_ms))


def _is_elsewhere(master: str) -> bool:
    return is_remote_master(master) and not masters.is_here(master)


def address_of(spec: RunSpec) -> KafkaAddress:
    """Return the Kafka of the flags, or that of `streamgauge up`."""
    if spec.kafka or spec.kafka_config:
        return kafka_security.external(spec.kafka, Path(spec.kafka_config) if spec.kafka_config else None)
    if services := keeper.status():
        return KafkaAddress(services.kafka)
    raise UsageError(
        "No Kafka is named, and `streamgauge up` has not started one. Give --kafka HOST:PORT, or start one with "
        "`streamgauge up`."
    )


def epoch_of(spec: RunSpec, until_ms: int | None, now_ms: int) -> int:
    """Return the load start, before which the events of the backlog lie. Only there no part of a window is cut."""
    part_ms = oracle_of(spec).part_ms
    if until_ms is None:
        return now_ms // part_ms * part_ms
    if until_ms % part_ms:
        raise UsageError(
            f"--until is a multiple of {part_ms} ms for these windows, and {until_ms} is not: the nearest is "
            f"{round(until_ms / part_ms) * part_ms}."
        )
    return until_ms


def refuse(asked: Asked, *, checks: bool = False) -> None:
    """Raise for what can't succeed, before anything is started or created. `checks`: the topic has to exist."""
    if not asked.tape.waits:
        raise UsageError(
            f"The scenario {asked.spec.scenario} has no backlog. Give --backlog TIME, such as --backlog 10m."
        )
    if not TOPIC.fullmatch(asked.topic) or asked.topic in (".", ".."):
        raise UsageError(
            f"{shown(asked.topic)!r} is no name of a topic: Kafka allows up to 249 letters, digits, '.', '_' and '-'."
        )
    if _is_elsewhere(asked.spec.master):
        if is_loopback(asked.kafka.bootstrap):
            raise UsageError(
                f"master = {asked.spec.master!r} runs on other machines, which can't reach Kafka at "
                f"{asked.kafka.bootstrap}. Name the address by which they reach it with --kafka."
            )
        masters.refuse_unsaid_driver(asked.spec)
    executors.reach(asked.spec.master)
    there = asked.topic in kafka.topic_ids(asked.kafka)
    if there and not checks:
        raise UsageError(
            f"The topic {asked.topic} exists in Kafka at {asked.kafka.bootstrap}. A backlog takes a new one: choose "
            f"another --topic, or delete it first."
        )
    if checks and not there:
        raise UsageError(f"There is no topic {asked.topic} in Kafka at {asked.kafka.bootstrap} to compare.")


def fill(asked: Asked) -> Filled:
    """Create the topic and let Spark write the backlog into it. On any failure the topic is deleted."""
    surroundings = environments.prepare(manifests.load(ENGINE), console.note)
    partitions = _partitions(asked)
    wanted = {each.number: len(each) for each in partitions}
    with children.guard(), _topic(asked), console.progress() as screen, _scratch() as private:
        each_bytes = record_bytes(partitions, asked.epoch_ms)
        refuse_without_room(asked, wanted, each_bytes)
        size = size_in_words(int(each_bytes * sum(wanted.values())))
        screen.phase("backlog", f"{many(sum(wanted.values()), 'record')} in topic {asked.topic}, {size}")
        job = SparkJob("generators.spark_backlog", surroundings, private, _log(asked))
        config = {
            "run": asked.topic,
            "kafka": {"bootstrap": asked.kafka.bootstrap, "java": dict(asked.kafka.java)},
            "topic": asked.topic,
            "plan": asked.plan.as_text(),
        }
        cost, written = JobCost(), _Written(asked, sum(wanted.values()))
        # It ends before the topic is deleted: a producer could create that again.
        with job.running(asked.spec.master, asked.spec.conf, config):
            _await_end(job, cost, lambda: screen.update(written.look(job)))
        if job.child.returncode():
            raise HarnessError(
                f"Spark could not write the backlog, and it is not tried again, because records would be there twice: "
                f"{job.reason()}. The log is {job.child.log}."
            )
        refuse_others(kafka.end_offsets(asked.kafka, asked.topic), wanted, asked.topic)
    return Filled(wanted, cost.used())


def check(asked: Asked, *, by_spark: bool) -> Checked:
    """Compare the topic with the plan, here or by Spark: each partition by itself, with the same code."""
    ends = kafka.end_offsets(asked.kafka, asked.topic)
    with children.guard(), console.progress() as screen:
        how = "by Spark" if by_spark else "here"
        screen.phase("check", f"{many(sum(ends.values()), 'record')} of topic {asked.topic}, read {how}")
        return _checked_by_spark(asked, ends) if by_spark else _checked_here(asked, ends)


def _checked_here(asked: Asked, ends: Mapping[int, int]) -> Checked:
    began_s, cpu_s = time.monotonic(), time.process_time()
    spans = [Span(number, 0, ends.get(number, 0)) for number in range(max(asked.tape.partitions, len(ends)))]
    found = [against_plan.of_partition(asked.plan, asked.kafka, asked.topic, span) for span in spans]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return Checked(found, Used(time.monotonic() - began_s, time.process_time() - cpu_s, peak))


def _checked_by_spark(asked: Asked, ends: Mapping[int, int]) -> Checked:
    surroundings = environments.prepare(manifests.load(ENGINE), console.note)
    with _scratch() as private:
        answer, cost = private / "answer.json", JobCost()
        kafka_of = {"bootstrap": asked.kafka.bootstrap, "librdkafka": dict(asked.kafka.librdkafka)}
        question = {"plan": asked.plan, **kafka_of, "topic": asked.topic, "ends": dict(ends)}
        config = {"run": asked.topic, "answer": str(answer), "asked": msgspec.json.encode(question).decode()}
        job = SparkJob("harness.kafka_log.spark_check_job", surroundings, private, _log(asked))
        with job.running(asked.spec.master, asked.spec.conf, config):
            _await_end(job, cost, lambda: None)
        if job.child.returncode() or not answer.is_file():
            raise HarnessError(f"Spark could not compare the topic: {job.reason()}. The log is {job.child.log}.")
        return Checked(msgspec.json.decode(answer.read_bytes(), type=list[Compared]), cost.used())


def _partitions(asked: Asked) -> list[Partition]:
    return [Partition(asked.tape, number) for number in range(asked.tape.partitions)]


def _log(asked: Asked) -> Path:
    return state_folder() / "backlog" / f"{asked.topic}.log"


def _await_end(job: SparkJob, cost: JobCost, look: Callable[[], None]) -> None:
    def over() -> bool:
        cost.take(job.pids())
        look()
        return not job.child.alive()

    wait_until(over, deadline_s=math.inf, what="the end of Spark", every_s=POLL_S)


def record_bytes(partitions: list[Partition], epoch_ms: int) -> float:
    """Return the mean size of a record in the log, from the first ones of a partition that has some."""
    batch = next((batch for each in partitions for batch in each.batches(epoch_ms)), None)
    if batch is None:
        return 0.0
    held = sum(int(batch[name].nbytes) for name in (KEY, VALUE))
    return held / len(batch) + PER_RECORD


def room_wanted(records: Mapping[int, int], each_bytes: float, replicas: Mapping[int, set[int]]) -> dict[int, int]:
    """Return the bytes that each broker will store."""
    found: dict[int, int] = {}
    for partition, brokers in replicas.items():
        for broker in brokers:
            found[broker] = found.get(broker, 0) + PER_REPLICA + int(records[partition] * each_bytes)
    return found


def refuse_without_room(asked: Asked, records: Mapping[int, int], each_bytes: float) -> None:
    """Compare what each broker will store with what it has free, as far as it says so."""
    free = kafka.usable_bytes(asked.kafka)
    for broker, size in sorted(room_wanted(records, each_bytes, kafka.replicas(asked.kafka, asked.topic)).items()):
        wanted = size + disk_space.AS_GOOD_AS_FULL
        if wanted > free.get(broker, wanted):
            raise NoRoomError(
                f"There is not enough disk space for this backlog: broker {broker} of Kafka at "
                f"{asked.kafka.bootstrap} needs {size_in_words(wanted)} ({many(sum(records.values()), 'record')} of "
                f"{each_bytes:.0f} bytes in all, {size_in_words(disk_space.AS_GOOD_AS_FULL)} to spare), but only "
                f"{size_in_words(free[broker])} are free there. Free some, or give a lower --rate or a shorter "
                f"--backlog."
            )


def refuse_others(ends: Mapping[int, int], wanted: Mapping[int, int], topic: str) -> None:
    """Raise if the topic has more or fewer records than the plan."""
    others = [
        f"{ends.get(partition, 0):,} instead of {count:,} in partition {partition}"
        for partition, count in sorted(wanted.items())
        if ends.get(partition, 0) != count
    ]
    if others:
        raise HarnessError(
            f"Spark ended well, but the topic {topic} does not hold each record once: {', '.join(others)}. Another "
            f"program may have written there. Start the same command again."
        )


@contextmanager
def _topic(asked: Asked) -> Iterator[None]:
    """Create the topic. Delete it by its id if anything fails: a part of a backlog looks like a whole one."""
    given = kafka.create_topic(asked.kafka, asked.topic, asked.tape.partitions)
    try:
        yield
    except BaseException:
        console.say(_deleted(asked, given))
        raise


def _deleted(asked: Asked, given: str) -> str:
    place = f"{asked.topic} in Kafka at {asked.kafka.bootstrap}"
    try:
        why = kafka.delete_topics(asked.kafka, {asked.topic: given}).get(asked.topic, "")
    except HarnessError as error:
        why = str(error)
    if why:
        return f"The topic {place} stays, and is no whole backlog: delete it before you use it ({why})."
    return f"Deleted the topic {place}: its backlog was not whole."


@contextmanager
def _scratch() -> Iterator[Path]:
    """Yield a private folder that vanishes, also after a kill."""
    folder = lease_folder(Path(tempfile.mkdtemp(prefix="streamgauge-backlog-")))
    try:
        yield folder
    finally:
        release_folder(folder)


class _Written:
    """How much of a backlog is in its topic."""

    def __init__(self, asked: Asked, planned: int) -> None:
        self._asked, self._planned, self._count = asked, planned, 0
        self._asked_s = self._moved_s = time.monotonic()

    def look(self, job: SparkJob) -> Facts:
        now_s = time.monotonic()
        if now_s - self._asked_s >= ASK_S:
            self._asked_s = now_s
            with suppress(HarnessError):  # a broker may be away for a moment: Spark decides
                count = sum(kafka.end_offsets(self._asked.kafka, self._asked.topic).values())
                self._moved_s = now_s if count > self._count else self._moved_s
                self._count = count
        if job.child.alive() and now_s - self._moved_s > STALLED_S and self._count < self._planned:
            raise HarnessError(
                f"Spark has written no further record for {STALLED_S:.0f} s: {self._count:,} of {self._planned:,} are "
                f"in the topic. It may have no free executor. It said: {job.reason()}. The log is {job.child.log}."
            )
        # The time of the count, not of this look: a rate over looks that saw the same count is 0.
        return sent_so_far(self._asked_s * 1000, self._count, self._planned)
