"""The Kafka client in Python: it sends to its topic, and a record counts as open until Kafka has answered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import kafka
import pytest
from kafka import errors

from generators.producers import PythonProducer

BATCH: Any = [{"key": b"a", "value": b"1"}, {"key": b"b", "value": b"2"}, {"key": b"c", "value": b"3"}]


class Sending:
    """A record on its way: the test answers it."""

    def add_callback(self, confirm: Callable[[object], None]) -> Sending:
        self.confirm = confirm
        return self

    def add_errback(self, fail: Callable[[Exception], None]) -> Sending:
        self.fail = fail
        return self


class Client:
    """In the place of kafka-python's."""

    def __init__(self, **settings: Any) -> None:
        self.settings = settings
        self.asked: list[str] = []
        self.sent: list[tuple[str, int, bytes]] = []
        self.open: list[Sending] = []
        self.known = True

    def partitions_for(self, topic: str) -> set[int]:
        self.asked.append(topic)
        return {0, 1} if self.known else set()

    def send(self, topic: str, *, value: bytes, key: bytes, partition: int) -> Sending:
        self.sent.append((topic, partition, value))
        self.open.append(Sending())
        return self.open[-1]

    def flush(self, timeout: float) -> None:
        if not self.known:
            raise errors.KafkaTimeoutError("not yet")

    def close(self, timeout: float) -> None:
        pass


@pytest.fixture
def producer(monkeypatch) -> Any:
    monkeypatch.setattr(kafka, "KafkaProducer", Client)
    return PythonProducer("a:1,b:2", "events", {})


def test_a_client_in_python_asks_for_its_topic_and_sends_to_it(producer):
    producer.await_topic(1.0)
    assert producer.offer(1, BATCH) == []

    assert producer._client.settings["bootstrap_servers"] == ["a:1", "b:2"]
    assert producer._client.asked == ["events"]
    assert producer._client.sent == [("events", 1, b"1"), ("events", 1, b"2"), ("events", 1, b"3")]


def test_a_topic_that_kafka_does_not_know_is_an_error(producer):
    producer._client.known = False
    with pytest.raises(TimeoutError, match="events"):
        producer.await_topic(0.0)


def test_a_record_is_open_until_it_is_confirmed_or_has_failed_and_then_is_a_failure(producer):
    producer.offer(0, BATCH)
    assert producer.waiting() == 3
    first, second, _ = producer._client.open
    first.confirm(None)
    second.fail(errors.KafkaTimeoutError("too late"))
    assert (producer.waiting(), producer.failures.count) == (1, 1)

    producer._client.known = False
    assert producer.finish(0.1) == 1
    assert producer.failures.by_key == {b"b": 1, b"c": 1}
