"""Two sinks that write a batch's outputs into a Kafka topic. They differ when Spark runs a batch again.

`kafka` is Spark's own: at least once, thus a repeated batch is emitted twice. `transaction` writes each batch in one
transaction with the number of the batch: a batch that was emitted already is skipped.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from pyspark.sql import DataFrame

from workloads.jobs.crash_points import CrashPoints
from workloads.jobs.run_config import Config
from workloads.jobs.spark_stream import Writer

ANSWER_S = 30.0
AGAIN_S = 0.2
# A broker that has just started returns these until it has loaded the group.
LOADING = (KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.COORDINATOR_LOAD_IN_PROGRESS)


def own_writer(config: Config) -> Writer:
    """Return a writer that does the same as `writeStream.format("kafka")`, between crash points."""
    crash_points = CrashPoints(Path(config["crash_path"]))
    kafka = {f"kafka.{key}": value for key, value in config["kafka"]["java"].items()}
    options = {**kafka, "kafka.bootstrap.servers": config["kafka"]["bootstrap"], "topic": config["results_topic"]}

    def write(outputs: DataFrame, batch: int) -> None:
        held = outputs.persist()  # without it a stateful query would be run twice
        crashes = crash_points.at if held.count() else _nowhere
        crashes("c1", batch)
        held.write.format("kafka").options(**options).save()
        crashes("c3", batch)
        crashes("c4", batch)
        held.unpersist()

    return write


def transaction_writer(config: Config) -> Writer:
    """Return a writer that collects all outputs to the driver, whose producer writes them: executors can't share a
    transaction. That is fine for a few thousand outputs per batch, and not for millions.
    """
    crash_points, batches = CrashPoints(Path(config["crash_path"])), Batches(config)

    def write(outputs: DataFrame, batch: int) -> None:
        values = [row["value"] for row in outputs.collect()]
        if values:
            batches.write(batch, values, crash_points)

    return write


WRITERS: dict[str, Callable[[Config], Writer]] = {"transaction": transaction_writer, "kafka": own_writer}


class Batches:
    """Writes whole transactions, each with the number of its batch as the offset of a consumer group, which Kafka
    commits together with the records or not at all.
    """

    def __init__(self, config: Config) -> None:
        known = {"bootstrap.servers": config["kafka"]["bootstrap"], **config["kafka"]["librdkafka"]}
        name = f"streamgauge-{config['run']}-outputs"
        self._topic = config["results_topic"]
        self._group = Consumer({**known, "group.id": name, "enable.auto.commit": False})
        self._producer = Producer({**known, "transactional.id": name, "linger.ms": 0})
        # From here on an earlier driver can't commit any more, and its open transaction is aborted.
        self._producer.init_transactions(ANSWER_S)
        self._next = max(self._position(), 0)  # negative: there is none yet

    def write(self, batch: int, values: Sequence[str], crash_points: CrashPoints) -> None:
        if batch < self._next:
            return
        middle = len(values) // 2
        self._producer.begin_transaction()
        crash_points.at("c1", batch)
        self._produce(values[:middle])
        crash_points.at("c2", batch)
        self._produce(values[middle:])
        position = TopicPartition(self._topic, 0, batch + 1)
        self._producer.send_offsets_to_transaction([position], self._group.consumer_group_metadata(), ANSWER_S)
        self._producer.commit_transaction(ANSWER_S)
        crash_points.at("c3", batch)
        crash_points.at("c4", batch)

    def _position(self) -> int:
        """The offset of the group. Retries while the broker is loading the group."""
        ends_s = time.monotonic() + ANSWER_S
        while True:
            try:
                (position,) = self._group.committed([TopicPartition(self._topic, 0)], ANSWER_S)
                return int(position.offset)
            except KafkaException as error:
                if error.args[0].code() not in LOADING or time.monotonic() >= ends_s:
                    raise
            time.sleep(AGAIN_S)

    def _produce(self, values: Sequence[str]) -> None:
        for value in values:
            self._producer.produce(self._topic, value, partition=0)
            self._producer.poll(0)
        self._producer.flush(ANSWER_S)


def _nowhere(_point: str, _batch: int) -> None:
    """A batch without outputs has no crash points."""
