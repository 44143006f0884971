"""Of the topics and groups in a Kafka that is not ours, only those that a run has made are deleted."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from harness.model import HarnessError, KafkaAddress
from harness.services import kafka, made
from harness.services.owners import owner_mark


@pytest.fixture
def theirs(kafka_address, tmp_path, monkeypatch) -> KafkaAddress:
    """A Kafka of somebody else's, and a ledger of this test alone."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    address: KafkaAddress = replace(kafka_address, external=True)
    return address


def content(address: KafkaAddress, topic: str) -> list[bytes | None]:
    consumer = Consumer({"bootstrap.servers": address.bootstrap, "group.id": "look", "enable.auto.commit": False})
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        return [message.value() for message in consumer.consume(kafka.end_offsets(address, topic)[0], timeout=30)]
    finally:
        consumer.close()


def foreign(address: KafkaAddress, name: str) -> str:
    """A topic of somebody else's, with records."""
    kafka.create_topic(address, name, 1)
    producer = Producer({"bootstrap.servers": address.bootstrap})
    for number in range(3):
        producer.produce(name, f"theirs {number}".encode(), partition=0)
    assert producer.flush(30) == 0
    return name


RECORDS = [b"theirs 0", b"theirs 1", b"theirs 2"]


def commit(address: KafkaAddress, group: str, topic: str) -> None:
    consumer = Consumer({"bootstrap.servers": address.bootstrap, "group.id": group})
    consumer.commit(offsets=[TopicPartition(topic, 0, 1)], asynchronous=False)
    consumer.close()


def groups(address: KafkaAddress) -> set[str]:
    with kafka._admin(address, "groups") as admin:
        return {group["group_id"] for group in admin.list_groups()}


def test_no_two_runs_have_one_name():
    assert made.of_this_run_alone("same-second") != made.of_this_run_alone("same-second")


def test_a_topic_whose_creation_was_refused_is_not_deleted(theirs):
    name = foreign(theirs, made.of_this_run_alone("streamgauge-run"))

    with pytest.raises(HarnessError, match="TOPIC_ALREADY_EXISTS, error 36"):
        made.create(theirs, name, 1)
    assert made.delete_own(theirs, name) == []

    assert content(theirs, name) == RECORDS
    kafka.delete_topic(theirs, name)


def test_a_topic_that_took_the_name_of_ours_is_not_deleted(theirs):
    name = made.of_this_run_alone("streamgauge-run")
    made.create(theirs, name, 1)
    kafka.delete_topic(theirs, name)
    foreign(theirs, name)

    assert made.delete_own(theirs, name) == []

    assert content(theirs, name) == RECORDS
    kafka.delete_topic(theirs, name)


def test_what_a_run_and_its_engine_made_goes_and_what_looks_like_it_stays(theirs):
    old_name = f"streamgauge-{uuid.uuid4().hex[:8]}"  # as runs were named before, without random bits
    name = made.of_this_run_alone(old_name)
    stay = [foreign(theirs, each) for each in (old_name, f"{old_name}.streams-changelog", f"{name}2")]
    made.create(theirs, name, 2)
    own = [f"{name}.streams-counts-changelog", f"repartition__{name}.quix--by-campaign"]
    for each in own:
        kafka.create_topic(theirs, each, 1)
    commit(theirs, f"{name}.streams", stay[0])
    commit(theirs, f"{old_name}.streams", stay[0])

    assert made.delete_own(theirs, name) == []

    left = kafka.topic_ids(theirs)
    assert not {name, *own} & set(left)
    assert [content(theirs, each) for each in stay] == [RECORDS] * 3
    assert f"{old_name}.streams" in groups(theirs)
    assert f"{name}.streams" not in groups(theirs)
    for each in stay:
        kafka.delete_topic(theirs, each)


def test_the_next_run_deletes_what_a_killed_one_left_and_no_more(theirs):
    killed, living = (made.of_this_run_alone("streamgauge-run") for _ in range(2))
    bystander = foreign(theirs, f"streamgauge-{uuid.uuid4().hex}")
    for each in (killed, living):
        made.create(theirs, each, 1)
    for file, topic in made._records():
        if topic.name == killed:
            dead = "1:dead:" + owner_mark().split(":", 2)[2]
            file.write_text(json.dumps({**vars(topic), "owner": dead}))

    said = made.delete_left(theirs)

    assert said == [f"Deleted topic {killed}, which a dead run left in Kafka."]
    left = kafka.topic_ids(theirs)
    assert killed not in left
    assert {living, bystander} <= set(left)
    assert made.delete_left(theirs) == []
    made.delete_own(theirs, living)
    kafka.delete_topic(theirs, bystander)


def test_a_topic_of_our_own_broker_needs_no_record(kafka_address, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    name = made.of_this_run_alone("streamgauge-run")
    made.create(kafka_address, name, 1)
    assert made._records() == []
    kafka.delete_topic(kafka_address, name)
