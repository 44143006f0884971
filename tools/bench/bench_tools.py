"""Kafka's own performance tools as parts of `bench`: the speed of Kafka's own client with the same records.

Each is a program of its own, so its CPU time includes the start of the JVM. Its rate is the one it reports.
ProducerPerformance draws each record at random from a file, and sends it without a key.
"""

from __future__ import annotations

import re
import resource
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from generators.encode import Message
from generators.producers import CONFLUENT_SETTINGS
from harness.install import jvm
from harness.kafka_log import recount
from harness.services.kafka import write_settings
from tools.bench.bench_records import Arguments, Cost, peak_mib, ready_made

PACKAGE = "org.apache.kafka.tools"
HEAP = "-Xmx512m"  # as in Kafka's own scripts
DEADLINE_S = 300
STALL_MS = 30_000
COLUMNS = 10  # in the output of ConsumerPerformance
# The settings of our sender, by the names of Kafka's own client.
PRODUCER_SETTINGS: Mapping[str, str] = {
    "enable.idempotence": str(CONFLUENT_SETTINGS["enable.idempotence"]).lower(),
    "linger.ms": str(CONFLUENT_SETTINGS["linger.ms"]),
    "batch.size": str(CONFLUENT_SETTINGS["batch.size"]),
    "compression.type": str(CONFLUENT_SETTINGS["compression.type"]),
}


class Told(NamedTuple):
    """The result that a tool reports at its end."""

    events: int
    per_s: float


def kafka_producer_performance(arguments: Arguments) -> Cost:
    folder = Path(arguments.folder)
    payloads, settings = folder / "payloads", folder / "producer.properties"
    payloads.write_bytes(as_payloads(ready_made()))
    write_settings(settings, PRODUCER_SETTINGS)
    options = ("--payload-file", payloads, "--throughput", "-1", "--command-config", settings)
    return _run("ProducerPerformance", arguments, options, told_of_sending)


def kafka_consumer_performance(arguments: Arguments) -> Cost:
    fetched = recount.CONSUMER_SETTINGS["fetch.message.max.bytes"]
    options = ("--fetch-size", str(fetched), "--timeout", str(STALL_MS), "--hide-header")
    return _run("ConsumerPerformance", arguments, options, told_of_reading)


def as_payloads(messages: Sequence[Message]) -> bytes:
    """Write one record per line. No record of ours contains a line end."""
    return b"".join(message["value"] + b"\n" for message in messages if message["value"])


def told_of_sending(said: str) -> Told | None:
    """Parse the last line of its kind, which covers the whole run; those before cover a few seconds each."""
    found = re.findall(r"^(\d+) records sent, ([\d.]+) records/sec", said, re.MULTILINE)
    return Told(int(found[-1][0]), float(found[-1][1])) if found else None


def told_of_reading(said: str) -> Told | None:
    """Parse the table of one row. The last column is the rate since the consumer joined its group."""
    rows = [row for line in said.splitlines() if len(row := line.split(", ")) == COLUMNS]
    return Told(int(rows[-1][4]), float(rows[-1][-1])) if rows else None


def _run(tool: str, arguments: Arguments, options: Sequence[str | Path], told_by: Callable[[str], Told | None]) -> Cost:
    command = (
        *(jvm.java(), *jvm.ENGLISH, HEAP, "-cp", arguments.classpath, f"{PACKAGE}.{tool}"),
        *("--bootstrap-server", arguments.bootstrap, "--topic", arguments.topic),
        *("--num-records", str(arguments.events), *options),
    )
    done = subprocess.run(
        command, check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, timeout=DEADLINE_S
    )
    used, told = resource.getrusage(resource.RUSAGE_CHILDREN), told_by(done.stdout)
    if done.returncode or told is None or told.events < arguments.events:
        raise RuntimeError(
            f"Kafka's {tool} should have come to {arguments.events:,} records. It ended with exit code "
            f"{done.returncode} and said: {done.stdout}"
        )
    cpu_s = used.ru_utime + used.ru_stime
    return Cost(told.events, told.events / told.per_s, cpu_s, peak_mib(resource.RUSAGE_CHILDREN), {})
