"""A job without a framework: one process that consumes, and writes results and offsets in one Redis transaction.

It is exactly once by construction: a crash loses the transaction with its offsets or keeps it with them.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Mapping
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, cast

import redis
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Message, TopicPartition

from workloads.jobs.progress_log import ProgressLog
from workloads.jobs.run_config import Config

OFFSETS_KEY = "reference:offsets"
BATCH_FIELD = "batch"
CONSUME_MAX = 20_000
CONSUME_WAIT_S = 0.01  # `consume` waits for a full batch or this long, which adds to the latency of events
FLUSH_EVERY_S = 0.05


Record_contra = TypeVar("Record_contra", contravariant=True)


class Answer(Protocol[Record_contra]):
    """The state of a job, and its changes that are not in Redis yet."""

    unusable: int  # number of records so far that are no events

    def restore(self, client: redis.Redis) -> None:
        """Load the state of the last transaction."""

    def add(self, record: Record_contra, /) -> None: ...

    def write(self, transaction: redis.client.Pipeline) -> None:
        """Add all changes since the last call to the transaction."""


class Record(NamedTuple):
    """A record, and its place in the topic."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None


def value_of(message: Message) -> bytes | None:
    return message.value()


def record_of(message: Message) -> Record:
    return Record(message.partition() or 0, message.offset() or 0, message.key(), message.value())


def run(
    config: Config,
    client: redis.Redis,
    answer: Answer[Record_contra],
    record_of: Callable[[Message], Record_contra],
) -> None:
    """Run until SIGTERM, from the end of the last transaction. `record_of` converts a message for the answer."""
    answer.restore(client)
    stopped = False

    def stop(*_: object) -> None:
        nonlocal stopped
        stopped = True

    signal.signal(signal.SIGTERM, stop)
    job = _Job(client, answer, record_of, ProgressLog(config["progress_path"]))
    consumer = open_consumer(config, job.offsets)
    flushed_s = 0.0
    while not stopped:
        job.take(consumer.consume(CONSUME_MAX, CONSUME_WAIT_S))
        if job.rows and time.monotonic() - flushed_s >= FLUSH_EVERY_S:
            job.flush()
            flushed_s = time.monotonic()
    if job.rows:
        job.flush()
    consumer.close()


class _Job(Generic[Record_contra]):
    def __init__(
        self,
        client: redis.Redis,
        answer: Answer[Record_contra],
        record_of: Callable[[Message], Record_contra],
        progress: ProgressLog,
    ) -> None:
        self._client, self._answer, self._record_of, self._progress = client, answer, record_of, progress
        saved = cast(dict[str, str], client.hgetall(OFFSETS_KEY))
        self._batch = int(saved.pop(BATCH_FIELD, 0))
        self.offsets = {int(partition): int(offset) for partition, offset in saved.items()}
        self.rows = 0

    def take(self, messages: list[Any]) -> None:
        for message in messages:
            if error := message.error():
                raise KafkaException(error)
            self._answer.add(self._record_of(message))
            self.offsets[message.partition()] = message.offset() + 1
        self.rows += len(messages)

    def flush(self) -> None:
        """Write all changes and their offsets, together or not at all."""
        transaction = self._client.pipeline(transaction=True)
        self._answer.write(transaction)
        offsets: dict[Any, Any] = {str(partition): offset for partition, offset in self.offsets.items()}
        transaction.hset(OFFSETS_KEY, mapping={**offsets, BATCH_FIELD: self._batch + 1})
        transaction.execute()
        self._progress.write(batch=self._batch, rows=self.rows, offsets=offsets, unusable=self._answer.unusable)
        self.rows = 0
        self._batch += 1


def open_consumer(config: Config, offsets: Mapping[int, int]) -> Consumer:
    """Open a consumer at these offsets. The queue settings are needed: with librdkafka's defaults a fast reader
    stalls.
    """
    consumer = Consumer(
        {
            "bootstrap.servers": config["kafka"]["bootstrap"],
            **config["kafka"]["librdkafka"],
            "group.id": f"streamgauge-{config['run']}-reference",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "queued.min.messages": 1_000_000,
            "queued.max.messages.kbytes": 262_144,
            "fetch.queue.backoff.ms": 10,
            "fetch.message.max.bytes": 4_000_000,
        }
    )
    topic = consumer.list_topics(config["topic"], timeout=30).topics[config["topic"]]
    if topic.error:
        raise KafkaException(topic.error)
    consumer.assign(
        [TopicPartition(topic.topic, each, offsets.get(each, OFFSET_BEGINNING)) for each in topic.partitions]
    )
    return consumer
