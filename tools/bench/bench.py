"""Measure the harness' own limits in sending, computing expected counts and reading, each beside something comparable.

The figures depend on the machine. Only the ratio of the two holds elsewhere, so both are always shown.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from harness.install import jvm
from harness.install.origin import ROOT
from harness.model import HarnessError, KafkaAddress
from harness.services import owners
from harness.services.children import spawn
from harness.services.kafka import EmbeddedKafka, create_topic
from harness.util.wait import wait_until
from tools.bench.bench_records import MILLION, PARTITIONS, Arguments, Cost

PART_DEADLINE_S = 600.0
QUICK = 10  # sizes are divided by this
BATCHES = "batches"  # the topic that is read again
OURS, READY_MADE = "ours: tape, bytes, hand-over", "produce_batch(), bytes that are there"
PARSED, BARE = "ours: parsed to the byte, into a table", "consume(), nothing looked at"
PRODUCER, CONSUMER = "Kafka's ProducerPerformance", "Kafka's ConsumerPerformance"
SEND_GOAL = 0.85  # of produce_batch() with existing bytes
READ_GOAL = 0.6  # of the bare consume
FOLD_GOAL = 5.0  # M events/s per core
SQL_GOAL = 1.0  # M events/s per core
MEMORY_GOAL_MIB = 300.0
AFTERWARDS_GOAL_MIB = 1024.0


@dataclass(frozen=True)
class Ceiling:
    """One figure, those it is compared with, and its goal."""

    name: str
    value: float
    unit: str
    goal: float
    reached: bool
    beside: dict[str, float]  # the same unit
    detail: str


@dataclass(frozen=True)
class Client:
    """One way to send the records, or to read them."""

    does: str  # "sends" | "reads"
    name: str
    per_s: float
    cpu_s_per_million: float  # of its process


@dataclass(frozen=True)
class Found:
    """The results of the bench."""

    ceilings: tuple[Ceiling, ...]
    clients: tuple[Client, ...]
    missing: str = ""  # the clients that could not be measured, and why


def bench(quick: bool, say: Callable[[str], None]) -> Found:
    """Measure everything, on an embedded broker of our own."""
    classpath, missing = kafka_tools(say)
    folder = owners.lease_folder(Path(tempfile.mkdtemp(prefix="streamgauge-bench-")))
    broker = EmbeddedKafka(folder, jvm.jars("services"), jvm.java())
    try:
        parts = _Parts(folder, broker.start(), QUICK if quick else 1, say, classpath)
        sending, reading = _sending(parts), _reading(parts)
        clients = (*_clients("sends", sending), *_clients("reads", reading))
        ceilings = (_generator(sending), _log(reading), *_oracle(parts), _oracle_by_sql(parts), _after_a_run(parts))
        return Found(ceilings, clients, missing)
    finally:
        broker.stop()
        owners.release_folder(folder)


def kafka_tools(say: Callable[[str], None]) -> tuple[str, str]:
    """Return the class path of Kafka's own performance tools and "", or "" and why they are missing.

    `bench` goes on without them.
    """
    beside = jvm.classpath("services", say)
    try:
        return f"{beside}{os.pathsep}{jvm.classpath('kafka-tools', say)}", ""
    except HarnessError as error:
        say(str(error))
        return "", f"Kafka's own tools are not among them. {error}"


def lines(found: Found) -> Iterator[str]:
    """Yield the results as lines for a terminal."""
    for each in found.ceilings:
        verdict = "reached" if each.reached else "not reached on this machine"
        yield f"{each.name}: {each.value:,.2f} {each.unit} (goal {each.goal:g}: {verdict})"
        if each.beside:
            yield f"    beside {'; '.join(f'{name}: {value:,.2f}' for name, value in each.beside.items())}"
        yield f"    {each.detail}"
    yield f"{'client':<50} {'events/s':>11} {'CPU-s per M':>13}"
    for client in found.clients:
        name = f"{client.does}  {client.name}"
        yield f"{name:<50} {client.per_s:>11,.0f} {client.cpu_s_per_million:>13.2f}"
    if found.missing:
        yield found.missing


class _Parts:
    """The runner of parts, each in a process of its own."""

    def __init__(self, folder: Path, kafka: KafkaAddress, divisor: int, say: Callable[[str], None], tools: str) -> None:
        self._folder, self._kafka, self._divisor, self._say = folder, kafka, divisor, say
        self.tools = tools  # the class path of Kafka's own tools; "" without them

    def topic(self, name: str) -> str:
        create_topic(self._kafka, name, PARTITIONS)
        return name

    def run(self, part: str, events: int, topic: str = "") -> Cost:
        events //= self._divisor
        arguments = Arguments(events, self._kafka.bootstrap, topic, self.tools, str(self._folder))
        self._say(f"{part}: {arguments.events:,} events")
        told, result = self._folder / f"{part}.arguments", self._folder / f"{part}.result"
        told.write_text(json.dumps(asdict(arguments)))
        child = spawn(
            [sys.executable, "-m", "tools.bench.bench_parts", part, str(told), str(result)],
            name=part,
            log=self._folder / f"{part}.log",
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
            cwd=ROOT,
        )
        wait_until(
            lambda: not child.alive(), deadline_s=PART_DEADLINE_S, what=f"the bench {part}", state=child.last_words
        )
        if child.returncode():
            raise HarnessError(f"The bench {part} ended with exit code {child.returncode()}. {child.last_words()}")
        child.kill_group()
        return Cost(**json.loads(result.read_text()))


def _sending(parts: _Parts) -> dict[str, Cost]:
    """Measure sending, by the name of the client."""
    costs = {
        OURS: parts.run("produce_batches", 5 * MILLION, parts.topic(BATCHES)),
        READY_MADE: parts.run("produce_ready_made", 5 * MILLION, parts.topic("ready")),
        "produce() one by one": parts.run("produce_one_by_one", MILLION, parts.topic("single")),
        "kafka-python": parts.run("produce_with_kafka_python", MILLION // 5, parts.topic("python")),
    }
    if parts.tools:
        costs[PRODUCER] = parts.run("kafka_producer_performance", 5 * MILLION, parts.topic("performance"))
    return costs


def _reading(parts: _Parts) -> dict[str, Cost]:
    """Measure reading of the records that our sender has sent."""
    costs = {
        BARE: parts.run("consume_bare", 5 * MILLION, BATCHES),
        "consume(), without the cycle collector": parts.run("consume_uncollected", 5 * MILLION, BATCHES),
        PARSED: parts.run("recount_log", 5 * MILLION, BATCHES),
    }
    if parts.tools:
        costs[CONSUMER] = parts.run("kafka_consumer_performance", 5 * MILLION, BATCHES)
    return costs


def _clients(does: str, costs: Mapping[str, Cost]) -> Iterator[Client]:
    for name, cost in costs.items():
        yield Client(does, name, cost.per_s, cost.cpu_s_per_million)


def _generator(costs: Mapping[str, Cost]) -> Ceiling:
    batches, ready = costs[OURS], costs[READY_MADE]
    spent = ", ".join(f"{name.removesuffix('_us')} {us:.2f}" for name, us in batches.detail.items())
    rest = 1e6 / batches.per_cpu_s - sum(batches.detail.values())
    return Ceiling(
        "generator to a real broker",
        batches.per_cpu_s / MILLION,
        "M events per CPU-s",
        round(SEND_GOAL * ready.per_cpu_s / MILLION, 2),
        batches.per_cpu_s >= SEND_GOAL * ready.per_cpu_s,
        {},
        f"{batches.per_cpu_s / ready.per_cpu_s:.0%} of produce_batch(); us: {spent}, its threads {rest:.2f}",
    )


def _log(costs: Mapping[str, Cost]) -> Ceiling:
    whole, bare = costs[PARSED], costs[BARE]
    return Ceiling(
        "log recount",
        whole.per_s / MILLION,
        "M records/s",
        round(READ_GOAL * bare.per_s / MILLION, 2),
        whole.per_s >= READ_GOAL * bare.per_s,
        {},
        f"{whole.per_s / bare.per_s:.0%} of the bare consume(); {whole.events:,} records",
    )


def _oracle(parts: _Parts) -> Iterator[Ceiling]:
    fold, made = parts.run("fold_only", 5 * MILLION), parts.run("fold_with_tape", 10 * MILLION)
    yield Ceiling(
        "oracle fold",
        fold.per_cpu_s / MILLION,
        "M events/s per core",
        FOLD_GOAL,
        fold.per_cpu_s >= FOLD_GOAL * MILLION,
        {"tape and fold together": made.per_cpu_s / MILLION},
        f"{fold.events:,} events",
    )
    large = parts.run("fold_with_tape", 100 * MILLION)
    yield Ceiling(
        "memory of a tape",
        large.peak_mib,
        "MiB at most",
        MEMORY_GOAL_MIB,
        large.peak_mib < MEMORY_GOAL_MIB and large.peak_mib < 1.2 * made.peak_mib,
        {f"a tape of {made.events:,} events": made.peak_mib},
        f"{large.events:,} events, made and folded in {large.wall_s:.1f} s",
    )


def _after_a_run(parts: _Parts) -> Ceiling:
    small, large = (_judged(parts, events * MILLION) for events in (13, 60))
    return Ceiling(
        "memory after a run",
        large.peak_mib,
        "MiB at most",
        AFTERWARDS_GOAL_MIB,
        large.peak_mib < AFTERWARDS_GOAL_MIB,
        {f"a run of {small.events:,} events": small.peak_mib},
        f"judged, measured and drawn from their files: {_spent(small)}; {_spent(large)}",
    )


def _spent(cost: Cost) -> str:
    parts = {name: us * cost.events / MILLION for name, us in cost.detail.items()}
    parts["other threads"] = cost.cpu_s - sum(parts.values())
    told = ", ".join(f"{name} {cpu_s:.1f}" for name, cpu_s in parts.items())
    return f"{cost.events:,} events in {cost.wall_s:.1f} s, CPU-s: {told}"


def _judged(parts: _Parts, events: int) -> Cost:
    parts.run("store_run", events)
    return parts.run("judge_run", events)


def _oracle_by_sql(parts: _Parts) -> Ceiling:
    small, large = parts.run("fold_by_sql", MILLION), parts.run("fold_by_sql", 10 * MILLION)
    twice, by_hand = parts.run("fold_by_sql_twice", 10 * MILLION), parts.run("fold_only", 10 * MILLION)
    value = large.per_cpu_s / MILLION
    return Ceiling(
        "oracle as SQL",
        value,
        "M events/s per core",
        SQL_GOAL,
        value >= SQL_GOAL,
        {
            f"as SQL, {small.events:,} events": small.per_cpu_s / MILLION,
            "as SQL, asked twice": twice.per_cpu_s / MILLION,
            "by hand": by_hand.per_cpu_s / MILLION,
        },
        f"{large.events:,} events; peak {large.peak_mib:,.0f} MiB, twice {twice.peak_mib:,.0f}, of {small.events:,} "
        f"{small.peak_mib:,.0f}, by hand {by_hand.peak_mib:,.0f}",
    )
