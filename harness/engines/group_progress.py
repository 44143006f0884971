"""The progress of an engine that commits its offsets to a consumer group: read from Kafka, written in the format that
other engines write themselves.

A commit is noticed with some delay, and never too early. While Kafka doesn't answer, or without commits, no line is
written.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Event, Lock, Thread

from harness.model import KafkaAddress, Progress

POLL_EVERY_S = 0.25
ANSWER_WITHIN_S = 2.0

Committed = Callable[[], Mapping[int, int]]  # by partition; empty if Kafka doesn't answer


class Commits:
    """The observed commits of the group: each change counts as one progress, but is no batch of the engine."""

    def __init__(self) -> None:
        self._seen: dict[int, int] = {}
        self._count = 0

    def progress(self, at_ms: int, offsets: Mapping[int, int]) -> Progress | None:
        """Return None without a change. The harness's own initial commit at the beginning is no progress."""
        new = dict(offsets)
        if new == self._seen or not (self._seen or any(new.values())):
            return None
        self._seen, self._count = new, self._count + 1
        return Progress(at_ms, self._count, 0, new)


class GroupProgress:
    """Polls in a separate thread: a Kafka that is down must not block the run."""

    def __init__(self, committed: Committed, path: Path) -> None:
        self._committed, self._path = committed, path
        self._commits, self._lock, self._stopped = Commits(), Lock(), Event()
        self._thread = Thread(target=self._work, name="group", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join(2 * ANSWER_WITHIN_S)

    def poll(self) -> None:
        """Poll once. Also called when an engine has ended, to get its last commit before a restart."""
        with self._lock:
            offsets = self._committed()
            if offsets and (new := self._commits.progress(time.time_ns() // 1_000_000, offsets)):
                line = {"at": new.at_ms, "batch": new.batch, "rows": new.rows, "offsets": dict(new.offsets)}
                with self._path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(line) + "\n")

    def _work(self) -> None:
        while not self._stopped.wait(POLL_EVERY_S):
            self.poll()


def committed_offsets(address: KafkaAddress, group: str, topic: str) -> Committed:
    """Use a persistent connection of a consumer. A consumer that reads nothing is no member of its group. librdkafka's
    admin client kills the process with a segmentation fault if a broker answers NOT_COORDINATOR, as one that has just
    started does: https://github.com/confluentinc/librdkafka/issues/5040"""
    # Imported late: it takes a tenth of the start of a command.
    from confluent_kafka import Consumer, KafkaException, TopicPartition

    # Do not wait for offsets within an open transaction: earlier ones are committed.
    settings = {"group.id": group, "enable.auto.commit": False, "isolation.level": "read_uncommitted", "log_level": "2"}
    client = Consumer({"bootstrap.servers": address.bootstrap, **address.librdkafka, **settings})

    def committed() -> Mapping[int, int]:
        try:
            partitions = client.list_topics(topic, ANSWER_WITHIN_S).topics[topic].partitions
            places = client.committed([TopicPartition(topic, each) for each in partitions], ANSWER_WITHIN_S)
        except KafkaException:  # it is down, or has no such group yet
            return {}
        return {place.partition: place.offset for place in places if not place.error and place.offset >= 0}

    return committed
