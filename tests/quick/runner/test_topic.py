"""The harness' own records in a topic: what a fault sends beside the plan is as the plan's events are."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from generators.encode import Batch, Encoder, Message
from generators.librdkafka import Client
from generators.producers import Failures, send_all
from harness.model import KafkaAddress
from harness.rundir.store import Store
from harness.runner.world import topic
from harness.runner.world.topic import TopicLog
from tests.quick.cases import SPEC
from workloads.base import COUNTS, Values
from workloads.keys import read_keys
from workloads.registry import codec_of

ROOT = Path(__file__).resolve().parents[3]
WHERE_BUILT = {
    "workloads/ad_impressions/schema.py": 1,  # population_of
}


@pytest.mark.parametrize("checksum", [False, True])
def test_a_record_that_a_fault_sends_carries_its_id_just_as_the_events_of_its_tape_do(tmp_path, monkeypatch, checksum):
    sent: list[dict[str, bytes | None]] = []
    monkeypatch.setattr(
        topic,
        "send_marks",
        lambda _kafka, _topic, marks, codec: sent.extend(Encoder(codec, 0).mark(mark) for mark in marks),
    )
    spec = replace(SPEC, tape=replace(SPEC.tape, checksum=checksum))
    store = Store.create(tmp_path, "topic")

    TopicLog(spec, KafkaAddress("nowhere"), "t", lambda _: None, store).send([0, 1], each=2)

    marks = [mark for entry in store.history("marks") for mark in entry["marks"]]
    assert len(sent) == len(marks) == 4
    for message, mark in zip(sent, marks, strict=True):
        assert (f"{mark['id']:012x}".encode() in (message["value"] or b"")) is checksum
    read = codec_of(spec.tape).read(
        Values.of([m["value"] for m in sent]), read_keys(Values.of([m["key"] for m in sent]))
    )
    assert set(read["kind"].tolist()) == {COUNTS}


def test_a_population_is_made_from_its_tape_at_one_place():
    built = {
        str(path.relative_to(ROOT)): sum(
            isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "Population"
            for node in ast.walk(ast.parse(text))
        )
        for folder in ("generators", "harness", "workloads", "reports")
        for path in (ROOT / folder).rglob("*.py")
        if "Population" in (text := path.read_text(encoding="utf-8"))
    }
    assert {path: times for path, times in built.items() if times} == WHERE_BUILT


def test_a_record_that_did_not_fit_into_the_queue_is_an_error():
    class Nearly:
        """Its queue holds one record."""

        def __init__(self) -> None:
            self.failures, self.taken = Failures(), 0

        def offer(self, partition: int, batch: Batch) -> list[int]:
            self.taken += 1
            return [0] if self.taken > 1 else []

        def finish(self, deadline_s: float) -> int:
            return 0

    one: Message = {"key": b"key", "value": b"value"}
    producer: Any = Nearly()
    send_all(producer, [(0, one)], 1.0)

    with pytest.raises(TimeoutError, match="1 records did not fit into the queue"):
        send_all(producer, [(0, one)], 1.0)


def test_each_record_that_failed_is_counted_once():
    failures = Failures()
    for key, words in ((b"a", "timed out"), (b"b", "timed out"), (None, "too large")):
        failures.add(key, words)

    assert (failures.count, failures.by_key) == (3, {b"a": 1, b"b": 1, b"": 1})
    assert failures.sentences() == ["2 x timed out", "1 x too large"]


def test_a_client_reports_without_waiting():
    asked: list[int] = []
    client = object.__new__(Client)
    vars(client).update(_client=1, _library=SimpleNamespace(rd_kafka_poll=lambda _, ms: asked.append(ms)))
    client.poll()

    assert asked == [0]
