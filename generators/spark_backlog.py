"""Writes a backlog into an existing topic by Spark, a task for each partition.

    python -m generators.spark_backlog CONFIG.json

A task that fails is not tried again: Spark's Kafka sink would write its records twice. So the topic of a job that
failed is no backlog, and its owner deletes it (harness/drivers/backlog.py).
"""

from __future__ import annotations

import signal
import sys

from generators.spark_tape import NAME, PLAN, TapeSource
from workloads.jobs import spark_stream
from workloads.jobs.run_config import Config, read_config

ONCE = {"spark.task.maxFailures": "1", "spark.speculation": "false"}
# Large requests, as the ad servers send them. Java's client is idempotent, so its own retries double nothing.
SINK = {"kafka.linger.ms": "5", "kafka.batch.size": "1000000", "kafka.buffer.memory": str(256 << 20)}


def main(config_path: str) -> int:
    config = read_config(config_path)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    write(config)
    return 0


def write(config: Config) -> None:
    session = spark_stream.make_session({**config, "options": {**config["options"], **ONCE}})
    try:
        session.dataSource.register(TapeSource)
        records = session.read.format(NAME).option(PLAN, config["plan"]).load()
        secured = {f"kafka.{key}": value for key, value in config["kafka"]["java"].items()}
        sink = records.write.format("kafka").options(**SINK, **secured).option("topic", config["topic"])
        sink.option("kafka.bootstrap.servers", config["kafka"]["bootstrap"]).save()
    finally:
        session.stop()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
