"""The clients that hand records to Kafka, behind one small protocol: they send the same bytes to the same partitions.

A failure is kept by the record's key, so that it is known afterwards to the single event what Kafka has confirmed.
What is still open when the patience ends is neither sent nor unsent: it is counted as unresolved.
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

# Idempotent: a retry can't double. Large batches, because what a record costs is mostly what a request costs. Without
# compression, which would cost the sender, the broker that checks what is in a batch, and every reader more than the
# bytes do on one machine; whoever has a network in between says so in the file of --kafka-config.
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
    """What an ad server needs of a client."""

    failures: Failures
    pauses: Pauses

    def await_topic(self, deadline_s: float) -> None:
        """Ask for the topic's metadata, and raise TimeoutError when it does not come."""

    def offer(self, partition: int, messages: Batch) -> Batch:
        """Hand over as much as fits; the rest comes back, to be offered again soon."""

    def poll(self) -> None:
        """Let the client report; never waits."""

    def waiting(self) -> int:
        """How many records are neither confirmed nor failed, or a few more."""

    def finish(self, deadline_s: float) -> int:
        """Wait until all is confirmed or failed, give up what is not, and say how many fates stayed unknown."""


class Failures:
    """Which records were refused or given up, and what the client said of them."""

    def __init__(self) -> None:
        self.by_key: Counter[bytes] = Counter()
        self.words: Counter[str] = Counter()
        self.unresolved = 0  # nobody knows whether Kafka has them

    def add(self, key: bytes | None, words: str) -> None:
        self.by_key[key or b""] += 1
        self.words[words] += 1

    def reported(self, key: bytes, error: int, words: str) -> None:
        """By librdkafka, with its number of the error."""
        self.unresolved += error == KafkaError._PURGE_INFLIGHT
        self.add(key, words)

    @property
    def count(self) -> int:
        return self.by_key.total()

    def sentences(self, limit: int = 10) -> list[str]:
        return [f"{count:,} x {words}" for words, count in self.words.most_common(limit)]


class Pauses:
    """For how long a quota of Kafka's stopped the client: throttle_time_ms of its protocol."""

    def __init__(self) -> None:
        self.longest_ms = 0

    def told(self, ms: int) -> None:
        self.longest_ms = max(self.longest_ms, ms)


class ConfluentProducer:
    """librdkafka. Only errors are reported back, which makes a confirmed record cost nothing in Python."""

    def __init__(self, bootstrap: str, topic: str, settings: Mapping[str, str]) -> None:
        self.failures = Failures()
        self.pauses = Pauses()
        self._name = topic
        own = {**CONFLUENT_SETTINGS, **settings, "bootstrap.servers": bootstrap}
        # What the client calls must not lead back to this producer, or neither would ever end.
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
        for row in np.flatnonzero((errors != 0) & ~full).tolist():  # what can never be sent has failed
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
    """A broker that is away for a moment is no failure of a record; it is told, for the reader of the log."""
    print(f"Kafka client: {words}", file=sys.stderr, flush=True)


class PythonProducer:
    """kafka-python: the same tape by another client, at a tenth of the pace."""

    def __init__(self, bootstrap: str, topic: str, settings: Mapping[str, Any]) -> None:
        from kafka import KafkaProducer, errors  # a large library; no other client needs it

        self.failures = Failures()
        self.pauses = Pauses()  # its client never says
        self._topic = topic
        self._open: Counter[bytes] = Counter()
        self._lock = threading.Lock()  # its answers come in a thread of its own
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
        """Its thread reports by itself."""

    def waiting(self) -> int:
        return self._open.total()

    def finish(self, deadline_s: float) -> int:
        """What is still open then is a failure as well, of each record that it concerns."""
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
    """Send a few records, each into its partition, and wait until Kafka has confirmed them; for the harness' own,
    never in the hot path."""
    rest = [left for partition, message in messages for left in producer.offer(partition, Batch.of([message]))]
    producer.finish(deadline_s)
    if rest or producer.failures.count:
        raise TimeoutError(
            "; ".join(producer.failures.sentences()) or f"{len(rest)} records did not fit into the queue"
        )
