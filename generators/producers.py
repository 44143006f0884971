"""The Kafka clients that send records, with one interface: they send the same bytes to the same partitions.

A failure is recorded by the record's key, so that the confirmed events are known exactly. A record that is still open
at the deadline is neither sent nor unsent: it counts as unresolved.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import numpy as np
from confluent_kafka import KafkaError

from generators.encode import Batch, Message
from generators.librdkafka import Client, KafkaRefusedError

# Idempotent: a retry can't duplicate a record. Large batches, because most of a record's cost is its request's. No
# compression: on one machine it costs the sender, the broker that validates batches, and every reader more than the
# bytes do; with a network in between, set it in the file of --kafka-config.
CONFLUENT_SETTINGS: Mapping[str, Any] = {
    "enable.idempotence": True,
    "linger.ms": 5,
    "batch.num.messages": 10_000,
    "batch.size": 1_000_000,
    "queue.buffering.max.messages": 2_000_000,
    "queue.buffering.max.kbytes": 1_048_576,
    "compression.type": "none",
    "delivery.report.only.error": True,
}
KAFKA_PYTHON_SETTINGS: Mapping[str, Any] = {
    "enable_idempotence": True,
    "acks": "all",
    "linger_ms": 5,
    "batch_size": 262_144,
}


class Producer(Protocol):
    """The client interface that an ad server needs."""

    failures: Failures
    pauses: Pauses

    def await_topic(self, deadline_s: float) -> None:
        """Request the topic's metadata. Raise TimeoutError if it does not come."""

    def offer(self, partition: int, messages: Batch) -> Batch:
        """Hand over as many messages as fit. Return the rest, to be offered again soon."""

    def poll(self) -> None:
        """Let the client report, without waiting."""

    def waiting(self) -> int:
        """Return how many records are neither confirmed nor failed; it may be slightly too high."""

    def finish(self, deadline_s: float) -> int:
        """Wait until all records are confirmed or failed, and abandon the others. Return how many stayed unresolved."""


class Failures:
    """The records that were refused or abandoned, with the client's error messages."""

    def __init__(self) -> None:
        self.by_key: Counter[bytes] = Counter()
        self.words: Counter[str] = Counter()
        self.unresolved = 0  # it is unknown whether Kafka has them

    def add(self, key: bytes | None, words: str) -> None:
        self.by_key[key or b""] += 1
        self.words[words] += 1

    def reported(self, key: bytes, error: int, words: str) -> None:
        """Add a failure from librdkafka, with its error number."""
        self.unresolved += error == KafkaError._PURGE_INFLIGHT
        self.add(key, words)

    @property
    def count(self) -> int:
        return self.by_key.total()

    def sentences(self, limit: int = 10) -> list[str]:
        return [f"{count:,} x {words}" for words, count in self.words.most_common(limit)]


class Pauses:
    """The longest pause that a quota of Kafka imposed on the client: throttle_time_ms of its protocol."""

    def __init__(self) -> None:
        self.longest_ms = 0

    def told(self, ms: int) -> None:
        self.longest_ms = max(self.longest_ms, ms)


class ConfluentProducer:
    """A librdkafka client. Only errors are reported back, so that a confirmed record costs nothing in Python."""

    def __init__(self, bootstrap: str, topic: str, settings: Mapping[str, str]) -> None:
        self.failures = Failures()
        self.pauses = Pauses()
        self._name = topic
        own = {**CONFLUENT_SETTINGS, **settings, "bootstrap.servers": bootstrap}
        # The callbacks must not refer to this producer, or neither would ever be freed.
        self._client = Client(topic, own, self.failures.reported, _say_trouble, self.pauses.told)

    def await_topic(self, deadline_s: float) -> None:
        try:
            self._client.ask_for_topic(deadline_s)
        except KafkaRefusedError as error:
            raise TimeoutError(
                f"Kafka did not say within {deadline_s:g} s what it knows of the topic {self._name}: {error}."
            ) from error

    def offer(self, partition: int, messages: Batch) -> Batch:
        errors = self._client.produce(partition, messages)
        self.poll()
        full = errors == KafkaError._QUEUE_FULL
        for row in np.flatnonzero((errors != 0) & ~full).tolist():  # an error other than a full queue is final
            self.failures.add(messages[row]["key"], self._client.words_of(int(errors[row])))
        return messages.only(full)

    def poll(self) -> None:
        self._client.poll()

    def waiting(self) -> int:
        return self._client.waiting()

    def finish(self, deadline_s: float) -> int:
        if self._client.flush(deadline_s):
            self._client.purge()  # reports every record that was still open, each by its key
            self._client.flush(deadline_s)
        return self.failures.unresolved


def _say_trouble(words: str) -> None:
    """Print to the log: a broker that is down for a moment is no failure of a record."""
    print(f"Kafka client: {words}", file=sys.stderr, flush=True)


class PythonProducer:
    """A kafka-python client: it sends the same tape at a tenth of the rate."""

    def __init__(self, bootstrap: str, topic: str, settings: Mapping[str, Any]) -> None:
        from kafka import KafkaProducer, errors  # a large library; no other client needs it

        self.failures = Failures()
        self.pauses = Pauses()  # kafka-python reports none
        self._topic = topic
        self._open: Counter[bytes] = Counter()
        self._lock = threading.Lock()  # callbacks run in the client's thread
        self._error: type[Exception] = errors.KafkaError
        self._client = KafkaProducer(bootstrap_servers=bootstrap.split(","), **{**KAFKA_PYTHON_SETTINGS, **settings})

    def await_topic(self, deadline_s: float) -> None:
        end = time.monotonic() + deadline_s
        while not self._client.partitions_for(self._topic):
            if time.monotonic() > end:
                raise TimeoutError(f"Kafka did not say within {deadline_s:g} s what it knows of {self._topic}.")

    def offer(self, partition: int, messages: Batch) -> Batch:
        for message in messages:
            self._send(partition, message["value"], message["key"] or b"")
        return messages[:0]

    def poll(self) -> None:
        """Do nothing: the client's thread reports by itself."""

    def waiting(self) -> int:
        return self._open.total()

    def finish(self, deadline_s: float) -> int:
        """Record each record that is still open at the deadline as a failure too."""
        try:
            self._client.flush(timeout=deadline_s)
        except self._error as error:
            print(f"Kafka client: {error}", file=sys.stderr, flush=True)
        with self._lock:
            unresolved = self._open.copy()
        self._client.close(timeout=1)
        for key in unresolved.elements():
            self.failures.add(key, f"not confirmed within {deadline_s:g} s")
        return unresolved.total()

    def _send(self, partition: int, value: bytes | None, key: bytes) -> None:
        with self._lock:
            self._open[key] += 1
        try:
            sending = self._client.send(self._topic, value=value, key=key, partition=partition)
        except self._error as error:
            self._close(key, error)
        else:
            sending.add_callback(lambda _: self._close(key, None)).add_errback(lambda error: self._close(key, error))

    def _close(self, key: bytes, error: Exception | None) -> None:
        with self._lock:
            self._open[key] -= 1
            if not self._open[key]:
                del self._open[key]
            if error is not None:
                self.failures.add(key, str(error))


CLIENTS: Mapping[str, Callable[[str, str, Mapping[str, Any]], Producer]] = {
    "confluent": ConfluentProducer,
    "kafka-python": PythonProducer,
}


def make_producer(client: str, bootstrap: str, topic: str, settings: Mapping[str, Any]) -> Producer:
    return CLIENTS[client](bootstrap, topic, settings)


def send_all(producer: Producer, messages: Iterable[tuple[int, Message]], deadline_s: float) -> None:
    """Send a few records, each to its partition, and wait until Kafka has confirmed them.

    It is for the harness' own records, never for the load.
    """
    rest = [left for partition, message in messages for left in producer.offer(partition, Batch.of([message]))]
    producer.finish(deadline_s)
    if rest or producer.failures.count:
        raise TimeoutError(
            "; ".join(producer.failures.sentences()) or f"{len(rest)} records did not fit into the queue"
        )
