"""The reference job of enrichment: one plain process that holds each order until the watermark has passed it.

    python reference.py CONFIG.json

An order is answered when everything that was in the log a moment ago was read, and the newest time in it minus the
allowed lateness has reached the order's own time; or when no record has come for a second. Each output names its
record, so that after a crash the output topic shows what was emitted: this makes the job exactly once without any other
state.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from heapq import heappop, heappush
from typing import Any

import msgspec
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from workloads.enrichment.jobs.enriched import Windows
from workloads.jobs.plain_process import CONSUME_MAX, CONSUME_WAIT_S, open_consumer
from workloads.jobs.progress_log import ProgressLog
from workloads.jobs.run_config import Config, read_config

FLUSH_EVERY_S = 0.1
IDLE_S = 1.0
ANSWER_S = 30.0

Place = tuple[int, int]  # partition and offset of a record


class Order(msgspec.Struct):
    """The fields of an event that the question needs. A record without them is unusable."""

    user: str
    ordered_at: int


decode_order = msgspec.json.Decoder(Order).decode


class Orders:
    """The orders that were read, and those that are not emitted yet."""

    def __init__(self, out: set[Place], watermark_ms: int) -> None:
        self._out, self._allowed_ms = out, watermark_ms
        self._windows: dict[str, Windows] = defaultdict(Windows)
        self._held: list[tuple[int, Place, int, str]] = []  # time, place, number of the event, user
        self._newest_ms = 0
        self.unusable = 0

    def add(self, place: Place, key: bytes | None, value: bytes | None) -> None:
        try:
            order, event = decode_order(value or b""), int(key or b"", 16)
        except (msgspec.DecodeError, UnicodeDecodeError, ValueError):
            self.unusable += 1
            return
        self._windows[order.user].add(order.ordered_at)
        self._newest_ms = max(self._newest_ms, order.ordered_at)
        if place in self._out:
            self._out.remove(place)
        else:
            heappush(self._held, (order.ordered_at, place, event, order.user))

    def answered(self, *, idle: bool) -> list[bytes]:
        """Return the outputs that are due, in order of event time."""
        until_ms = self._newest_ms if idle else self._newest_ms - self._allowed_ms
        outputs = []
        while self._held and self._held[0][0] <= until_ms:
            time_ms, place, event, user = heappop(self._held)
            answer = self._windows[user].answer(time_ms)
            output = {"campaign": user, "window": event, "output": {"orders": answer}, "of": place}
            outputs.append(json.dumps(output).encode())
        return outputs

    def done(self, read: Mapping[int, int]) -> dict[int, int]:
        """Return the offset up to which each partition was emitted, given the offsets that were read."""
        done = dict(read)
        for _, (partition, offset), *_ in self._held:
            done[partition] = min(done[partition], offset)
        return done


class OutputTopic:
    """The output topic: its earlier outputs, and new ones in whole transactions."""

    def __init__(self, config: Config) -> None:
        self._name, self._group = config["results_topic"], f"streamgauge-{config['run']}-out"
        known = {"bootstrap.servers": config["kafka"]["bootstrap"], **config["kafka"]["librdkafka"]}
        self._known = known
        self._producer = Producer(
            {**known, "transactional.id": f"streamgauge-{config['run']}-enrichment", "linger.ms": 0}
        )
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


class Job:
    def __init__(self, config: Config, stopped: Callable[[], bool]) -> None:
        self._stopped = stopped
        self._topic = OutputTopic(config)
        self._orders = Orders(self._topic.out(), config["watermark_ms"])
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
        self._orders.add(place, message.key(), message.value())
        self._offsets[message.partition()] = message.offset() + 1
        self._rows += 1
        self._moved_s = time.monotonic()

    def _put_out(self) -> None:
        outputs = self._orders.answered(idle=time.monotonic() - self._moved_s > IDLE_S)
        if outputs:
            self._topic.write(outputs)
        if outputs or self._rows:
            offsets = {str(partition): offset for partition, offset in self._orders.done(self._offsets).items()}
            self._progress.write(batch=self._batch, rows=self._rows, offsets=offsets, unusable=self._orders.unusable)
            self._rows, self._batch = 0, self._batch + 1


def main(config_path: str) -> None:
    stopped = False

    def stop(*_: object) -> None:
        nonlocal stopped
        stopped = True

    signal.signal(signal.SIGTERM, stop)
    Job(read_config(config_path), lambda: stopped).run()


if __name__ == "__main__":
    main(sys.argv[1])
