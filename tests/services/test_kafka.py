"""The embedded broker and the control plane, for real."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from harness.model import HarnessError, KafkaAddress
from harness.services import addresses, kafka
from harness.services.kafka import EmbeddedKafka
from harness.util.wait import wait_until


def produce(address: KafkaAddress, topic: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": address.bootstrap, **address.librdkafka})
    for number in range(count):
        producer.produce(topic, str(number).encode(), partition=number % 4)
    assert producer.flush(20) == 0


def test_a_topic_can_be_used_as_soon_as_it_is_made(kafka_address, topic):
    produce(kafka_address, topic, 40)
    assert kafka.end_offsets(kafka_address, topic) == {0: 10, 1: 10, 2: 10, 3: 10}
    consumer = Consumer({"bootstrap.servers": kafka_address.bootstrap, "group.id": topic})
    consumer.assign([TopicPartition(topic, 0, 0)])
    seen = [message.value() for message in consumer.consume(10, timeout=20)]
    consumer.close()
    assert seen == [str(number).encode() for number in range(0, 40, 4)]


def test_deleted_records_move_the_beginning(kafka_address, topic):
    produce(kafka_address, topic, 40)
    kafka.delete_records(kafka_address, topic, {0: 4, 3: 10})
    assert kafka.beginning_offsets(kafka_address, topic) == {0: 4, 1: 0, 2: 0, 3: 10}
    assert kafka.end_offsets(kafka_address, topic) == {0: 10, 1: 10, 2: 10, 3: 10}


def test_a_group_that_would_begin_at_the_end_begins_where_the_topic_does(kafka_address, topic):
    produce(kafka_address, topic, 40)
    kafka.delete_records(kafka_address, topic, {0: 4})
    group = f"group-{topic}"
    kafka.begin_group(kafka_address, group, topic)
    settings = {"bootstrap.servers": kafka_address.bootstrap, "group.id": group, "auto.offset.reset": "latest"}
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    seen = [message.value() for message in consumer.consume(36, timeout=30)]
    consumer.close()
    assert len(seen) == 36


def test_topics_come_and_go_and_asking_makes_none(kafka_address):
    name = f"test-{uuid.uuid4().hex}"
    assert name not in kafka.topic_ids(kafka_address)
    with pytest.raises(
        HarnessError, match=rf"refused a request about topic {name} \(UNKNOWN_TOPIC_OR_PARTITION, error 3"
    ):
        kafka.end_offsets(kafka_address, name)
    assert name not in kafka.topic_ids(kafka_address)
    kafka.create_topic(kafka_address, name, 2)
    with pytest.raises(HarnessError, match="TOPIC_ALREADY_EXISTS, error 36"):
        kafka.create_topic(kafka_address, name, 2)
    kafka.delete_topic(kafka_address, name)
    wait_until(lambda: name not in kafka.topic_ids(kafka_address), deadline_s=60, what="the topic to be gone")


def test_nobody_there_is_told_with_the_address():
    (port,) = addresses.free_ports(1)
    with pytest.raises(HarnessError, match=rf"Kafka at 127\.0\.0\.1:{port} could not be reached .*no process listens"):
        kafka.topic_ids(KafkaAddress(f"127.0.0.1:{port}"))


def test_a_broker_leaves_nothing_but_its_log_and_takes_other_ports_when_its_own_are_taken(
    tmp_path, jars, java, kafka_address, monkeypatch
):
    taken = int(kafka_address.bootstrap.rpartition(":")[2])
    offered = iter([[taken, addresses.free_ports(1)[0]], addresses.free_ports(2)])
    monkeypatch.setattr(addresses, "free_ports", lambda count: next(offered))
    broker = EmbeddedKafka(tmp_path, jars, java, heap="512m")
    address = broker.start()
    assert address.bootstrap != kafka_address.bootstrap
    assert "any" not in kafka.topic_ids(address)
    child = broker.child
    broker.stop()
    assert not child.alive()
    assert [path.name for path in tmp_path.iterdir()] == ["kafka.log"]
    with pytest.raises(HarnessError, match="before it is started"):
        _ = broker.address


def test_kafkas_own_tool_is_asked_once_and_a_folder_is_written_as_it_writes_one(tmp_path, jars, java, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    first = EmbeddedKafka(tmp_path / "first", jars, java, heap="512m")
    first.start()
    by_the_tool, ours = (tmp_path / "first" / "kafka-data" / name for name in ("made-by-the-tool", "log"))
    for path in by_the_tool.iterdir():
        assert told(ours / path.name) == told(path)
    first.stop()
    second = EmbeddedKafka(tmp_path / "second", jars, java, heap="512m")
    second.start()
    second.stop()
    assert "Formatting metadata directory" in first.log.read_text()
    assert "Formatting metadata directory" not in second.log.read_text()


def told(path: Path) -> bytes | list[str]:
    """All of it, but for the time and the ids, which are of one folder."""
    if path.suffix != ".properties":
        return path.read_bytes()
    lines = (line for line in path.read_text().splitlines() if not line.startswith("#"))
    return sorted(line.partition("=")[0] if ".id=" in line and "node" not in line else line for line in lines)


def test_a_broker_that_cannot_start_says_its_last_words(tmp_path, jars, java):
    broker = EmbeddedKafka(tmp_path, jars, java, heap="1k")
    with pytest.raises(HarnessError, match=r"ended while starting \(exit 1\)(.|\n)*Too small maximum heap"):
        broker.start()
    assert [path.name for path in tmp_path.iterdir()] == ["kafka.log"]


def test_a_broker_starts_whatever_the_language_of_its_user(tmp_path, jars, java, monkeypatch):
    """In Turkish the upper case of "classic" is no name of a group's type, and a broker ended before it listened."""
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Duser.language=tr -Duser.country=TR")
    broker = EmbeddedKafka(tmp_path, jars, java, heap="512m")
    address = broker.start()
    assert "any" not in kafka.topic_ids(address)
    assert "Picked up JAVA_TOOL_OPTIONS: -Duser.language=tr" in broker.log.read_text()
    broker.stop()
