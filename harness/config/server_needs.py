"""The needs of a run from an existing Kafka and Redis, which are checked before it starts."""

from __future__ import annotations

from generators.schedule import Schedule
from harness.judging.questions import keys_of
from harness.model import EngineManifest, RunSpec
from harness.services.external import Wants
from workloads.registry import results_of

RECORD_BYTES = 260  # of an event in Kafka, for the shipped workloads
CELL_BYTES = 130  # of a count and the time of its last change in Redis
ROW_BYTES = 150  # of a row of a table
SPARE_BYTES = 1_000_000  # for the connections of a run, and the harness' own keys
# Shipped engines that open transactions, and sinks that run scripts in Redis.
TRANSACTIONAL, SCRIPTED = ("kafka-streams", "quix"), ("fenced", "highest")


def wanted(spec: RunSpec, manifest: EngineManifest) -> Wants:
    """Return the needs of a run. For a user's own job only the needs of every run are known."""
    load, tables = Schedule(spec.tape), results_of(spec.tape).tables
    rows = len(tables.texts) + sum(map(len, tables.sets.values())) + sum(map(len, tables.hashes.values()))
    windows = 2 + (spec.tape.warm_up_ms + spec.tape.load_ms) // spec.window_ms
    writes_kafka = bool(manifest.results_topic) and spec.sink != "kafka"
    return Wants(
        transactions=manifest.shipped and (writes_kafka or manifest.id.startswith(TRANSACTIONAL)),
        bytes_per_s=RECORD_BYTES * load.total * 1000 / max(1, load.load.duration_ms + spec.tape.warm_up_ms),
        redis_bytes=SPARE_BYTES + CELL_BYTES * len(keys_of(spec)) * windows + ROW_BYTES * rows,
        scripts=manifest.shipped and spec.sink in SCRIPTED,
    )
