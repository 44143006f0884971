"""The progress of an engine that commits its offsets to a consumer group: read from Kafka, written as the lines that
other engines write themselves.

What is committed comes to be known some time later, and never too early. While Kafka doesn't answer, or nothing is
committed, there is no new line.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Event, Lock, Thread

from harness.model import KafkaAddress, Progress

LOOK_EVERY_S = 0.25
ANSWER_WITHIN_S = 2.0

Committed = Callable[[], Mapping[int, int]]  # by partition; nothing where Kafka doesn't answer


class Commits:
    """What was seen of the group, one after the other: each change is a progress, and no batch of the engine's."""

    def __init__(self) -> None:
        self._seen: dict[int, int] = {}
        self._count = 0

    def progress(self, at_ms: int, offsets: Mapping[int, int]) -> Progress | None:
        """None where nothing is new. A group that was only made to begin where the topic does has done nothing."""
        new = dict(offsets)
        if new == self._seen or not (self._seen or any(new.values())):
            return None
        self._seen, self._count = new, self._count + 1
        return Progress(at_ms, self._count, 0, new)


class GroupProgress:
    """Looks again and again, in a thread of its own: a Kafka that is down must not hold up the run."""

    def __init__(self, committed: Committed, path: Path) -> None:
        self._committed, self._path = committed, path
        self._commits, self._lock, self._stopped = Commits(), Lock(), Event()
        self._thread = Thread(target=self._work, name="group", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join(2 * ANSWER_WITHIN_S)

    def look(self) -> None:
        """Also whenever the newest has to be known: of an engine that has ended, before it is started again."""
        with self._lock:
            offsets = self._committed()
            if offsets and (new := self._commits.progress(time.time_ns() // 1_000_000, offsets)):
                line = {"at": new.at_ms, "batch": new.batch, "rows": new.rows, "offsets": dict(new.offsets)}
                with self._path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(line) + "\n")

    def _work(self) -> None:
        while not self._stopped.wait(LOOK_EVERY_S):
            self.look()


def committed_offsets(address: KafkaAddress, group: str, topic: str) -> Committed:
    """By a connection of its own, which is kept. A consumer that reads nothing is no member of its group. librdkafka's
    admin client ends the whole process by a segmentation fault where a broker answers NOT_COORDINATOR, as one does that
    has just started: https://github.com/confluentinc/librdkafka/issues/5040"""
    # A tenth of the start of a command that has no need of it.
    from confluent_kafka import Consumer, KafkaException, TopicPartition

    # Offsets within an open transaction are not waited for: those before it are committed.
    settings = {"group.id": group, "enable.auto.commit": False, "isolation.level": "read_uncommitted", "log_level": "2"}
    client = Consumer({"bootstrap.servers": address.bootstrap, **address.librdkafka, **settings})

    def committed() -> Mapping[int, int]:
        try:
            partitions = client.list_topics(topic, ANSWER_WITHIN_S).topics[topic].partitions
            places = client.committed([TopicPartition(topic, each) for each in partitions], ANSWER_WITHIN_S)
        except KafkaException:  # it is down, or knows of no such group yet
            return {}
        return {place.partition: place.offset for place in places if not place.error and place.offset >= 0}

    return committed
