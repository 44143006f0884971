"""The harness' own ceilings: what it can send, fold and read back, each beside something comparable of the same run.

Figures of one machine at one moment. What holds elsewhere is the ratio to the neighbour, so both are always shown.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from harness.experiments.bench_parts import PARTITIONS, Arguments, Cost
from harness.install import jvm
from harness.model import HarnessError, KafkaAddress
from harness.origin import ROOT
from harness.services import owners
from harness.services.children import spawn
from harness.services.kafka import EmbeddedKafka, create_topic
from harness.wait import wait_until

PART_DEADLINE_S = 600.0
QUICK = 10  # sizes are divided by this
MILLION = 1_000_000
SEND_GOAL = 0.85  # of produce_batch() with bytes that are there already
READ_GOAL = 0.6  # of the bare consume
FOLD_GOAL = 5.0  # M events/s per core
SQL_GOAL = 1.0  # M events/s per core
MEMORY_GOAL_MIB = 300.0


@dataclass(frozen=True)
class Ceiling:
    """One figure, what it is measured against, and what it was hoped to be."""

    name: str
    value: float
    unit: str
    goal: float
    reached: bool
    beside: dict[str, float]  # the same unit
    detail: str


def bench(quick: bool, say: Callable[[str], None]) -> list[Ceiling]:
    """All ceilings, on an embedded broker of our own."""
    folder = owners.lease_folder(Path(tempfile.mkdtemp(prefix="streamgauge-bench-")))
    broker = EmbeddedKafka(folder, jvm.jars("services"), jvm.java())
    try:
        parts = _Parts(folder, broker.start(), QUICK if quick else 1, say)
        return [_generator(parts), *_log(parts), *_oracle(parts), _oracle_by_sql(parts)]
    finally:
        broker.stop()
        owners.release_folder(folder)


def lines(found: Sequence[Ceiling]) -> Iterator[str]:
    """A screen of them."""
    for each in found:
        verdict = "reached" if each.reached else "not reached on this machine"
        yield f"{each.name}: {each.value:,.2f} {each.unit} (goal {each.goal:g}: {verdict})"
        for name, value in each.beside.items():
            yield f"    beside {name}: {value:,.2f}"
        yield f"    {each.detail}"


class _Parts:
    """Runs parts as processes of their own."""

    def __init__(self, folder: Path, kafka: KafkaAddress, divisor: int, say: Callable[[str], None]) -> None:
        self._folder, self._kafka, self._divisor, self._say = folder, kafka, divisor, say

    def topic(self, name: str) -> str:
        create_topic(self._kafka, name, PARTITIONS)
        return name

    def run(self, part: str, events: int, topic: str = "") -> Cost:
        arguments = Arguments(events // self._divisor, self._kafka.bootstrap, topic)
        self._say(f"{part}: {arguments.events:,} events")
        told, result = self._folder / f"{part}.arguments", self._folder / f"{part}.result"
        told.write_text(json.dumps(asdict(arguments)))
        child = spawn(
            [sys.executable, "-m", "harness.experiments.bench_parts", part, str(told), str(result)],
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


def _generator(parts: _Parts) -> Ceiling:
    batches = parts.run("produce_batches", 5 * MILLION, parts.topic("batches"))
    ready = parts.run("produce_ready_made", 5 * MILLION, parts.topic("ready"))
    single = parts.run("produce_one_by_one", MILLION, parts.topic("single"))
    python = parts.run("produce_with_kafka_python", MILLION // 5, parts.topic("python"))
    spent = ", ".join(f"{name.removesuffix('_us')} {us:.2f}" for name, us in batches.detail.items())
    rest = 1e6 / batches.per_cpu_s - sum(batches.detail.values())
    value = batches.per_cpu_s / MILLION
    return Ceiling(
        "generator to a real broker",
        value,
        "M events per CPU-second of the sender",
        round(SEND_GOAL * ready.per_cpu_s / MILLION, 2),
        batches.per_cpu_s >= SEND_GOAL * ready.per_cpu_s,
        {
            "produce_batch() of bytes that are there": ready.per_cpu_s / MILLION,
            "produce() one by one": single.per_cpu_s / MILLION,
            "kafka-python": python.per_cpu_s / MILLION,
        },
        f"{batches.per_cpu_s / ready.per_cpu_s:.0%} of produce_batch(); "
        f"{batches.per_s / MILLION:.2f} M/s by the wall; us per event: {spent}, threads of the client {rest:.2f}",
    )


def _log(parts: _Parts) -> Iterator[Ceiling]:
    bare = parts.run("consume_bare", 5 * MILLION, "batches")
    uncollected = parts.run("consume_uncollected", 5 * MILLION, "batches")
    whole = parts.run("recount_log", 5 * MILLION, "batches")
    yield Ceiling(
        "log recount",
        whole.per_s / MILLION,
        "M records/s",
        round(READ_GOAL * bare.per_s / MILLION, 2),
        whole.per_s >= READ_GOAL * bare.per_s,
        {
            "bare consume": bare.per_s / MILLION,
            "bare consume without the cycle collector": uncollected.per_s / MILLION,
        },
        f"{whole.per_s / bare.per_s:.0%} of the bare consume; {whole.events:,} records, parsed to the byte and written "
        f"as a table, with {1e6 / whole.per_cpu_s:.2f} us of CPU for each",
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
