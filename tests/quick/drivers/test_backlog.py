"""What `backlog` decides about room, moments and topics, and whether each record is there once."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from generators.by_partition import Partition
from harness.drivers import backlog
from harness.drivers.backlog import Asked
from harness.host.disk_space import NoRoomError
from harness.model import HarnessError, KafkaAddress, UsageError
from harness.services import kafka, keeper

NOW_MS = 1_763_700_000_123
FEW = {"rate": "1000", "backlog": "2s", "kafka": "127.0.0.1:9092"}


def asked(topic: str = "clicks", until_ms: int | None = None, scenario: str = "catchup", **flags: str) -> Asked:
    return backlog.resolve(scenario, {**FEW, **flags}, topic, until_ms, NOW_MS)


@pytest.fixture
def broker(monkeypatch):
    """A broker with one topic, two log folders' worth of room, and every partition on itself."""
    monkeypatch.setattr(kafka, "topic_ids", lambda _: {"taken": "1"})
    monkeypatch.setattr(kafka, "usable_bytes", lambda _: {1: 25_000_000})
    monkeypatch.setattr(kafka, "replicas", lambda *_: {number: {1} for number in range(4)})


def test_its_events_lie_before_now_or_a_moment_that_cuts_no_window():
    assert asked().epoch_ms == 1_763_700_000_000
    assert asked(until_ms=1_500).epoch_ms == 1_500
    with pytest.raises(UsageError, match=r"multiple of 500 ms .* the nearest is 1500"):
        asked(until_ms=1_501)


def test_without_a_flag_it_takes_the_kafka_that_up_has_started(monkeypatch):
    monkeypatch.setattr(keeper, "status", lambda: keeper.Services("127.0.0.1:1", "", "", ""))
    assert asked(kafka="").kafka == KafkaAddress("127.0.0.1:1")
    monkeypatch.setattr(keeper, "status", lambda: None)
    with pytest.raises(UsageError, match="streamgauge up"):
        asked(kafka="")


@pytest.mark.parametrize(
    ("mistake", "words"),
    [
        ({"topic": "taken"}, "exists in Kafka at 127.0.0.1:9092"),
        ({"topic": "a b"}, "is no name of a topic"),
        ({"topic": ".."}, "is no name of a topic"),
        ({"backlog": "0"}, "has no backlog"),
        ({"scenario": "calm", "backlog": "0"}, "calm has no backlog"),
        ({"master": "yarn"}, "can't reach Kafka at 127.0.0.1:9092"),
        ({"master": "yarn", "kafka": "broker:9092"}, "spark.driver.host"),
    ],
)
def test_what_can_not_succeed_is_refused_before_anything_starts(broker, mistake, words):
    with pytest.raises(UsageError, match=words):
        backlog.refuse(asked(**mistake))


def test_only_a_topic_that_exists_can_be_compared(broker):
    backlog.refuse(asked("taken"), checks=True)
    with pytest.raises(UsageError, match="There is no topic clicks in Kafka"):
        backlog.refuse(asked(), checks=True)


def test_what_can_succeed_is_not(broker):
    backlog.refuse(asked())
    backlog.refuse(asked(workload="etl"))  # also one that the engine spark has no job for


def test_a_broker_without_room_is_said_with_what_it_would_store(broker, monkeypatch):
    wanted = dict.fromkeys(range(4), 10_000)
    backlog.refuse_without_room(asked(), wanted, 40.0)
    with pytest.raises(
        NoRoomError, match=r"broker 1 .* needs 30 MB \(40,000 records of 250 bytes in all, 16 MB to spare\)"
    ):
        backlog.refuse_without_room(asked(), wanted, 250.0)
    monkeypatch.setattr(kafka, "usable_bytes", lambda _: {})
    backlog.refuse_without_room(asked(), wanted, 1e6)  # it does not say what it has


def test_each_broker_needs_room_for_its_replicas():
    wanted = backlog.room_wanted({0: 10, 1: 30}, 100.0, {0: {1, 2}, 1: {2}})
    assert wanted == {1: backlog.PER_REPLICA + 1000, 2: 2 * backlog.PER_REPLICA + 4000}


def test_a_record_has_the_size_that_is_sent():
    one = asked()
    partitions = [Partition(one.tape, number) for number in range(4)]
    sizes = [
        len(key) + len(value or b"") + backlog.PER_RECORD
        for each in partitions[:1]
        for batch in each.batches(one.epoch_ms)
        for key, value in zip(batch["key"].to_pylist(), batch["value"].to_pylist(), strict=True)
    ]

    assert backlog.record_bytes(partitions, one.epoch_ms) == pytest.approx(sum(sizes) / len(sizes), rel=0.05)


@pytest.mark.parametrize("ends", [{0: 4, 1: 3}, {0: 4, 1: 5}, {0: 4}])
def test_a_topic_that_does_not_hold_each_record_once_is_no_backlog(ends):
    with pytest.raises(HarnessError, match=rf"{ends.get(1, 0)} instead of 4 in partition 1"):
        backlog.refuse_others(ends, {0: 4, 1: 4}, "clicks")


def test_a_topic_that_holds_each_record_once_is_one():
    backlog.refuse_others({0: 4, 1: 4}, {0: 4, 1: 4}, "clicks")


@pytest.mark.parametrize(
    ("stays", "words"),
    [
        ({}, "Deleted the topic clicks in Kafka at 127.0.0.1:9092"),
        ({"clicks": "no right"}, r"stays, and is no whole backlog: delete it before you use it \(no right\)"),
        (HarnessError("gone"), r"stays, and is no whole backlog: .*\(gone\)"),
    ],
)
def test_a_topic_that_is_not_whole_is_deleted_by_its_id(monkeypatch, capsys, stays: Any, words: str):
    deleted: list[object] = []

    def delete(_: object, ids: object) -> object:
        deleted.append(ids)
        if isinstance(stays, HarnessError):
            raise stays
        return stays

    monkeypatch.setattr(kafka, "create_topic", lambda *_: "its-id")
    monkeypatch.setattr(kafka, "delete_topics", delete)

    with pytest.raises(KeyboardInterrupt), backlog._topic(asked()):
        raise KeyboardInterrupt
    assert deleted == [{"clicks": "its-id"}]
    assert re.search(words, " ".join(capsys.readouterr().err.split()))


def test_a_whole_topic_stays(monkeypatch):
    monkeypatch.setattr(kafka, "create_topic", lambda *_: "its-id")
    monkeypatch.setattr(kafka, "delete_topics", lambda *_: pytest.fail("deleted"))
    with backlog._topic(replace(asked(), topic="whole")):
        pass
