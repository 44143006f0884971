"""Somebody else who reads all results: it lands when it is answered, says how long that took, and ends."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import redis

from harness.faults import reader
from harness.faults.reader import FEWEST, OUR_SCHEMA
from harness.faults.registry import create, parse
from harness.faults.run_at_poll import Field, Moment
from harness.model import EngineManifest, KafkaAddress, SinkClaim
from harness.util.wait import wait_until
from tests.quick.cases import SPEC
from tests.quick.faults.test_faults import ScriptedEngine, report_of

CLAIM = SinkClaim("default", "keep", "none")
OURS = EngineManifest("scripted", ("x",), ".", shipped=False, sinks=(CLAIM,), results=OUR_SCHEMA)


class Answers:
    """In the place of Redis: so many reads are answered, the others not."""

    most = 10**9
    asked = 0
    hung_up = 0

    def __init__(self, client: object, names: object) -> None:
        """It has no connection."""

    def request(self, command: str) -> bytes:
        return command.encode()

    def ask(self, request: bytes) -> bytes:
        type(self).asked += 1
        if self.asked > self.most:
            raise redis.ConnectionError("gone")
        return request

    def disconnect(self) -> None:
        type(self).hung_up += 1


def moment(now_ms: int, field: Any = None) -> Moment:
    engine: Any = ScriptedEngine()
    return Moment(now_ms, 1, engine, None, 100, field)


def a_field() -> Field:
    client: Any = None
    return Field(None, None, KafkaAddress("nowhere"), "topic", client, ("a", "b"), lambda _: None)


def struck(monkeypatch, most: int):
    monkeypatch.setattr(Answers, "most", most)
    monkeypatch.setattr(Answers, "asked", 0)
    monkeypatch.setattr(Answers, "hung_up", 0)
    monkeypatch.setattr(reader, "Prepared", Answers)
    fault = create(replace(SPEC, sink="default", fault=parse("read-results(for=1s, every=1ms)@now")), OURS)
    fault.poll(moment(1, a_field()))
    return fault


def test_a_reader_lands_when_it_is_answered_and_says_how_long_that_took(monkeypatch):
    fault = struck(monkeypatch, most=10**9)
    wait_until(lambda: Answers.asked > FEWEST, deadline_s=20, what="some reads", every_s=0.01)
    fault.poll(moment(2, a_field()))
    assert report_of(fault).landed
    fault.poll(moment(1500, a_field()))
    read = Answers.asked
    fault.poll(moment(1501, a_field()))

    report = report_of(fault)
    assert report.healed, report.proof
    assert "HGETALL of 2 keys every 1 ms; it is answered; " in report.proof
    assert f"{read} reads, p50 " in report.proof
    assert Answers.asked == read, "it goes on to read"


def test_one_that_nobody_answers_did_not_land(monkeypatch):
    fault = struck(monkeypatch, most=0)
    wait_until(lambda: Answers.asked > FEWEST, deadline_s=20, what="some reads", every_s=0.01)
    for now_ms in (2, 60_000, 60_001):
        fault.poll(moment(now_ms, a_field()))

    report = report_of(fault)
    assert not report.landed
    assert "no read was answered, " in report.proof


def test_results_that_lie_elsewhere_are_no_matter_of_it():
    fault = create(replace(SPEC, sink="default", fault=parse("read-results@now")), replace(OURS, results="command"))

    assert fault.needs == ("scripted writes its results to command, not redis:compact",)


def test_a_world_without_redis_has_none():
    fault = create(replace(SPEC, sink="default", fault=parse("read-results@now")), OURS)
    fault.poll(moment(1))

    assert "n/a: there is no Redis in this run" in report_of(fault).proof


def test_reads_that_failed_are_counted_beside_those_that_were_answered(monkeypatch):
    fault = struck(monkeypatch, most=5)
    wait_until(lambda: Answers.asked > 8, deadline_s=20, what="some failed reads", every_s=0.01)
    for now_ms in (2, 1500, 1501):
        fault.poll(moment(now_ms, a_field()))

    proof = report_of(fault).proof
    assert "5 reads, p50 " in proof
    assert f", {Answers.asked - 5:,} failed" in proof


def test_a_reader_reads_for_as_long_as_it_was_told_and_then_hangs_up(monkeypatch):
    fault = struck(monkeypatch, most=10**9)
    wait_until(lambda: Answers.asked > FEWEST, deadline_s=20, what="some reads", every_s=0.01)
    fault.poll(moment(2, a_field()))
    fault.poll(moment(1001, a_field()))
    assert (fault.settled(), Answers.hung_up) == (False, 0)
    fault.poll(moment(1002, a_field()))
    fault.poll(moment(1003, a_field()))

    assert (report_of(fault).healed, Answers.hung_up) == (True, 1)
