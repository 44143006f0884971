"""Measure what a hop between two operators costs: from a function call to Kafka, in Flink and in Spark."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from harness.engines import environments
from harness.engines.manifest import load
from harness.install import jvm
from harness.services import owners
from harness.services.kafka import EmbeddedKafka
from tools.locality import programs
from tools.locality.ways import GROUPS, SIZES, Found, Hops, Turn, rows, turns

Say = Callable[[str], None]
FLINK_ENGINE = "flink"
NO_FLINK = "Flink is not among them, because it is not installed: `./streamgauge engines add flink` does it."


class Amount:
    """How much is measured."""

    def __init__(self, *, quick: bool) -> None:
        self.sizes: Sequence[int] = SIZES[:: 3 if quick else 2]
        self.rounds, self.time_ms = (3, 100) if quick else (5, 300)


def measure(quick: bool, say: Say) -> Found:
    """Measure all ways, on a broker and a cluster of our own."""
    amount = Amount(quick=quick)
    folder = owners.lease_folder(Path(tempfile.mkdtemp(prefix="streamgauge-locality-")))
    flink = load(FLINK_ENGINE)
    missing = (NO_FLINK,) if environments.missing(flink) else ()
    try:
        say("Java: two JVMs, and a broker")
        with programs.java(folder) as java:
            with broker(folder) as java.broker:
                measured = [*_told("Java", amount, java, say)]
            if not missing:
                say("Flink: a JobManager and two TaskManagers")
                with programs.flink(java, environments.prepare(flink, say), folder) as cluster:
                    measured += _told("Flink", amount, cluster, say)
            say("Spark: a driver")
            with programs.spark(java, folder) as driver:
                measured += _told("Spark", amount, driver, say)
        return Found(amount.rounds, amount.time_ms, rows(measured), missing)
    finally:
        owners.release_folder(folder)


@contextmanager
def broker(folder: Path) -> Iterator[EmbeddedKafka]:
    kafka = EmbeddedKafka(folder, jvm.jars("services"), jvm.java())
    kafka.start()
    try:
        yield kafka
    finally:
        kafka.stop()


def _told(group: str, amount: Amount, hops: Hops, say: Say) -> Iterator[Turn]:
    for size in amount.sizes:
        say(f"{group}: {len(GROUPS[group])} ways in turns, records of {size:,} bytes")
        yield from turns(group, [size], amount.rounds, amount.time_ms, hops)
