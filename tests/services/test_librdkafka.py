"""Records that are handed to librdkafka as arrays: taken, refused, given up, each by its key."""

from __future__ import annotations

import gc
import threading

import pytest

from generators.encode import Batch
from generators.librdkafka import Client, KafkaRefusedError
from generators.producers import ConfluentProducer
from harness.util.wait import wait_until

MOCK = {"test.mock.num.brokers": "1", "log_level": "0"}
NOBODY = "127.0.0.1:1"


def batch(count, length=20):
    return Batch.of([{"value": b"v" * length, "key": b"%012x" % number} for number in range(count)])


def test_all_is_taken_and_confirmed():
    producer = ConfluentProducer("", "t", MOCK)
    producer.await_topic(10.0)

    assert not producer.offer(0, batch(1000))
    assert producer.finish(10.0) == 0
    assert (producer.waiting(), producer.failures.count) == (0, 0)


def test_what_does_not_fit_comes_back_in_its_order():
    producer = ConfluentProducer(NOBODY, "t", {"queue.buffering.max.messages": "100", "log_level": "0"})
    rest = producer.offer(0, batch(150))

    assert list(rest) == list(batch(150))[100:]
    assert producer.failures.count == 0
    producer.finish(0.1)
    assert sorted(producer.failures.by_key) == [message["key"] for message in batch(100)]


def test_what_the_client_has_to_say_is_no_record_that_waits():
    producer = ConfluentProducer(NOBODY, "t", {"log_level": "0"})
    producer.offer(0, batch(1))
    client, library = producer._client._client, producer._client._library
    wait_until(lambda: library.rd_kafka_outq_len(client) > 1, deadline_s=30.0, what="the client to find nobody there")

    wait_until(lambda: producer.waiting() == 1, deadline_s=5.0, what="only the record to wait", every_s=0.01)


def test_what_can_never_be_sent_has_failed_by_its_key():
    producer = ConfluentProducer("", "t", {**MOCK, "message.max.bytes": "1000", "batch.size": "1000"})
    rest = producer.offer(0, Batch.of([{"value": b"v" * 2000, "key": b"a" * 12}, {"value": b"v", "key": b"b" * 12}]))

    assert not rest
    assert producer.finish(10.0) == 0
    assert dict(producer.failures.by_key) == {b"a" * 12: 1}
    assert "large" in producer.failures.sentences()[0]


def test_what_is_open_at_the_end_is_given_up_by_its_key(capsys):
    producer = ConfluentProducer(NOBODY, "t", {"log_level": "0"})
    producer.offer(0, batch(3))
    producer.finish(0.5)

    assert producer.waiting() == 0
    assert sorted(producer.failures.by_key) == [message["key"] for message in batch(3)]
    assert "Kafka client:" in capsys.readouterr().err


def test_a_topic_of_a_kafka_that_is_away_is_told():
    with pytest.raises(TimeoutError, match=r"did not say within 0\.3 s what it knows of the topic t"):
        ConfluentProducer(NOBODY, "t", {"log_level": "0"}).await_topic(0.3)


def test_a_setting_that_nobody_knows_is_named():
    with pytest.raises(KafkaRefusedError, match=r"no\.such\.setting"):
        Client("t", {"no.such.setting": 1}, lambda *_: None, lambda _: None, lambda _: None)


def test_a_record_without_a_value_and_one_with_an_empty_one_are_two_things():
    both = Batch.of([{"value": None, "key": b"a" * 12}, {"value": b"", "key": b"b" * 12}])

    assert [message["value"] for message in both] == [None, b""]
    assert both.values.lengths.tolist() == [-1, 0]


def test_its_threads_end_with_it():
    before = _threads()
    producer = ConfluentProducer("", "t", MOCK)
    producer.offer(0, batch(10))
    assert _threads() > before
    del producer
    gc.collect()

    wait_until(lambda: _threads() <= before, deadline_s=10.0, what="the client's threads to end", every_s=0.05)


def _threads():
    """Of the process, whoever started them."""
    import psutil

    return psutil.Process().num_threads() - threading.active_count() + 1
