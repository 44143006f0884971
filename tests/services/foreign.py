"""What others have in a Kafka and a Redis, and every byte of it: no command of ours may change any."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime, timedelta

import redis
from confluent_kafka import Consumer, Producer, TopicPartition

from harness.model import KafkaAddress
from harness.services import kafka

RECORDS = 3


def names_of_runs(prefix: str, run: str, seconds: int) -> list[str]:
    """What runs that begin within these seconds would have been called when names held no random digits."""
    now = datetime.now(UTC)
    return [f"{prefix}{now + timedelta(seconds=after):%Y%m%d-%H%M%S}-{run}" for after in range(seconds)]


class Foreign:
    """Topics with records, groups with offsets, and keys of Redis. `url`: of a database of theirs."""

    def __init__(self, address: KafkaAddress, url: str, topics: list[str], groups: list[str]) -> None:
        self._address, self._url, self._topics, self._groups = address, url, topics, groups
        for name in topics:
            kafka.create_topic(address, name, 1)
        self._fill()
        for group in groups:
            with closing(Consumer(self._settings(group))) as consumer:
                consumer.commit(offsets=[TopicPartition(topics[0], 0, 2)], asynchronous=False)

    def bytes(self) -> tuple[object, ...]:
        """All that they have, in a form that can be compared."""
        ids = kafka.topic_ids(self._address)
        topics = {name: (ids.get(name), self._records(name)) for name in self._topics}
        groups = {group: self._offset(group) for group in self._groups}
        with redis.Redis.from_url(self._url) as theirs:
            keys: Mapping[bytes, object] = {key: (theirs.dump(key), theirs.ttl(key)) for key in theirs.scan_iter()}
        return topics, groups, dict(sorted(keys.items()))

    def topics_beside(self, prefix: str) -> set[str]:
        """With this prefix, and none of theirs."""
        return {name for name in kafka.topic_ids(self._address) if name.startswith(prefix)} - set(self._topics)

    def _fill(self) -> None:
        producer = Producer({"bootstrap.servers": self._address.bootstrap})
        for name in self._topics:
            for number in range(RECORDS):
                producer.produce(name, f"{name} {number}".encode(), key=b"theirs", partition=0)
        assert producer.flush(30) == 0
        with redis.Redis.from_url(self._url) as theirs:
            theirs.set("theirs", "value")
            theirs.hset("campaign", "0", "theirs")  # as results of a run may be called

    def _records(self, name: str) -> list[tuple[object, ...]]:
        with closing(Consumer(self._settings("reader"))) as consumer:
            consumer.assign([TopicPartition(name, 0, 0)])
            found = consumer.consume(kafka.end_offsets(self._address, name)[0], timeout=30)
        return [(each.offset(), each.key(), each.value(), each.timestamp()) for each in found]

    def _offset(self, group: str) -> int:
        with closing(Consumer(self._settings(group))) as consumer:
            (at,) = consumer.committed([TopicPartition(self._topics[0], 0)], timeout=30)
        return int(at.offset)

    def _settings(self, group: str) -> dict[str, object]:
        return {"bootstrap.servers": self._address.bootstrap, "group.id": group, "enable.auto.commit": False}
