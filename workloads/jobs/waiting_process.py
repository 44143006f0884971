"""A plain process with one output for each event: it holds each event until the watermark has passed it.

Events are answered when everything that was in the log a moment ago was read. Each output names its record, so that
after a crash the output topic shows what was emitted: this makes the job exactly once without any other state.
"""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from workloads.jobs.plain_process import CONSUME_MAX, CONSUME_WAIT_S, open_consumer
from workloads.jobs.progress_log import ProgressLog
from workloads.jobs.run_config import Config, read_config

FLUSH_EVERY_S = 0.1
IDLE_S = 1.0
ANSWER_S = 30.0

Place = tuple[int, int]  # partition and offset of a record


class Events(Protocol):
    """The events that were read, and the question of a job."""

    unusable: int  # number of records so far that are no events

    def add(self, place: Place, key: bytes | None, value: bytes | None) -> None: ...

    def answered(self, *, idle: bool) -> list[bytes]:
        """Return the outputs that are due. `idle`: no record has come for a second."""

    def done(self, read: Mapping[int, int]) -> dict[int, int]:
        """Return the offset up to which each partition is done, given the offsets that were read."""


Made = Callable[[set[Place], Config], Events]  # from the records that were emitted before this start


def run(config_path: str, made: Made) -> None:
    """Run until SIGTERM."""
    stopped = False

    def stop(*_: object) -> None:
        nonlocal stopped
        stopped = True

    signal.signal(signal.SIGTERM, stop)
    _Job(read_config(config_path), made, lambda: stopped).run()


class OutputTopic:
    """The output topic: its earlier outputs, and new ones in whole transactions."""

    def __init__(self, config: Config) -> None:
        self._name, self._group = config["results_topic"], f"streamgauge-{config['run']}-out"
        known = {"bootstrap.servers": config["kafka"]["bootstrap"], **config["kafka"]["librdkafka"]}
        self._known = known
        self._producer = Producer({**known, "transactional.id": f"streamgauge-{config['run']}-outputs", "linger.ms": 0})
        # From here on an earlier start of this job can't commit any more, and its open transaction is aborted.
        self._producer.init_transactions(ANSWER_S)

    def out(self) -> set[Place]:
        consumer = Consumer(
            {
                **self._known,
                "group.id": self._group,
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
            }
        )
        consumer.assign([TopicPartition(self._name, 0, 0)])
        places: set[Place] = set()
        while (message := consumer.poll(ANSWER_S)) is not None:
            if (error := message.error()) and error.code() == KafkaError._PARTITION_EOF:
                consumer.close()
                return places
            if error:
                raise KafkaException(error)
            partition, offset = json.loads(message.value() or b"")["of"]
            places.add((partition, offset))
        raise TimeoutError(f"{self._name} can't be read to its end")

    def write(self, outputs: list[bytes]) -> None:
        self._producer.begin_transaction()
        for output in outputs:
            self._producer.produce(self._name, output, partition=0)
            self._producer.poll(0)
        self._producer.commit_transaction(ANSWER_S)


class _Job:
    def __init__(self, config: Config, made: Made, stopped: Callable[[], bool]) -> None:
        self._stopped = stopped
        self._topic = OutputTopic(config)
        self._events = made(self._topic.out(), config)
        self._progress = ProgressLog(config["progress_path"])
        self._consumer = open_consumer(config, {})
        self._offsets = {each.partition: 0 for each in self._consumer.assignment()}
        self._name = config["topic"]
        self._batch = self._rows = 0
        self._moved_s = time.monotonic()

    def run(self) -> None:
        while not self._stopped():
            self._read_to(self._ends())
            self._put_out()
            time.sleep(FLUSH_EVERY_S)
        self._consumer.close()

    def _ends(self) -> dict[int, int]:
        ends = {}
        for partition in self._offsets:
            _, ends[partition] = self._consumer.get_watermark_offsets(
                TopicPartition(self._name, partition), timeout=ANSWER_S
            )
        return ends

    def _read_to(self, ends: dict[int, int]) -> None:
        """Read all partitions up to their ends at one moment, else one would be ahead of the watermark of the
        others.
        """
        while not self._stopped() and any(self._offsets[each] < end for each, end in ends.items()):
            for message in self._consumer.consume(CONSUME_MAX, CONSUME_WAIT_S):
                self._take(message)

    def _take(self, message: Any) -> None:
        if error := message.error():
            raise KafkaException(error)
        place = message.partition(), message.offset()
        self._events.add(place, message.key(), message.value())
        self._offsets[message.partition()] = message.offset() + 1
        self._rows += 1
        self._moved_s = time.monotonic()

    def _put_out(self) -> None:
        outputs = self._events.answered(idle=time.monotonic() - self._moved_s > IDLE_S)
        if outputs:
            self._topic.write(outputs)
        if outputs or self._rows:
            offsets = {str(partition): offset for partition, offset in self._events.done(self._offsets).items()}
            self._progress.write(batch=self._batch, rows=self._rows, offsets=offsets, unusable=self._events.unusable)
            self._rows, self._batch = 0, self._batch + 1
