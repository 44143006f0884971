"""What another reader costs: turns whose answer is known, and a fault that reads and says how long that took."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import redis

from harness.faults import reader
from harness.faults.moment import Field, Moment
from harness.faults.reader import FEWEST, OUR_SCHEMA
from harness.faults.registry import create, parse
from harness.measuring.company import WORDS, cost, figures, is_steady, spans_of
from harness.measuring.latency.ways import Raw
from harness.measuring.measurement import Company, Lack, Quantity, Turn
from harness.model import EngineManifest, KafkaAddress, Segment, SinkClaim
from harness.wait import wait_until
from reports import company as words
from tests.quick.cases import SPEC
from tests.quick.test_faults import ScriptedEngine, report_of

EPOCH_MS = 1_750_000_000_000
READ_S = [(10.0, 10.5, 20.5), (30.5, 31.0, 41.0), (51.0, 51.2, 61.2)]


def turns(times: float = 1.0, drift: float = 0.0) -> tuple[Turn, ...]:
    """Figures of 100 and more; with a reader so many times as much."""
    spans = enumerate(spans_of(READ_S, 80.0))
    return tuple(
        Turn(reads, *span, dict.fromkeys(WORDS, (100 + drift * i) * (times if reads else 1)))
        for i, (reads, span) in spans
    )


def test_a_turn_begins_when_the_reader_is_answered_and_the_next_when_it_has_gone():
    assert [*spans_of(READ_S[:2], 50.0)] == [
        (False, (0.0, 10.0)),
        (True, (10.5, 20.5)),
        (False, (20.5, 30.5)),
        (True, (31.0, 41.0)),
        (False, (41.0, 50.0)),
    ]


@pytest.mark.parametrize("drift", [0.0, 20.0])
def test_what_a_reader_costs_is_found_and_what_changes_by_itself_is_not_put_down_to_it(drift):
    """Planted: one that makes all of it a quarter more."""
    found = cost("latency_p99_ms", turns(1.25, drift))

    assert found.value == pytest.approx(1.25)
    assert found.note == "1.25 to 1.25 in 3 turns"
    assert cost("latency_p99_ms", turns(1.0, drift)).value == pytest.approx(1.0)


def test_few_turns_and_turns_of_which_nothing_is_known_say_nothing():
    known = turns()
    found = cost("engine_cores", known[:5])
    without = [replace(each, figures={**each.figures, "engine_cores": None}) for each in known]

    assert (found.value, found.lack) == (None, Lack.UNKNOWN)
    assert "2 turns between two without a reader are too few: 3 are needed" in found.note
    assert cost("engine_cores", without).lack is Lack.UNKNOWN
    assert cost("latency_p50_ms", without).value == pytest.approx(1.0)


def test_only_a_steady_load_can_be_compared_with_itself():
    assert is_steady((Segment(1000, 50.0, 50.0), Segment(9000, 50.0, 50.0)))
    assert not is_steady((Segment(1000, 50.0, 50.0), Segment(9000, 50.0, 60.0)))


def test_the_first_seconds_of_a_turn_are_left_out():
    """From 10 s on each event takes 300 ms and the engine half a core; before, and until 12 s, far more."""
    at_s = np.arange(0.0, 30.0, 0.5)
    events = Raw(((EPOCH_MS / 1000 + at_s) * 1e6).astype(np.int64), np.where(at_s < 12, 9000.0, 300.0), None)
    second = np.arange(0, 30)
    used_s = np.where(second < 12, 5.0 * second, 60 + 0.5 * (second - 12))
    resources = pa.table(
        {
            "at_ms": EPOCH_MS + second * 1000,
            "part": ["engine"] * 30,
            "cpu_user_s": used_s,
            "cpu_system_s": np.zeros(30),
            "rss_bytes": second,
        }
    )
    found = figures(events, resources, EPOCH_MS, 10.0, 20.0)

    assert (found["latency_p50_ms"], found["latency_p99_ms"]) == (300, 300)
    assert found["engine_cores"] == pytest.approx(0.5)
    assert found["redis_cores"] is None, "it ran elsewhere"
    assert set(figures(events, resources, EPOCH_MS, 10.0, 14.0).values()) == {None}, "too short"
    assert set(figures(None, None, EPOCH_MS, 10.0, 20.0).values()) == {None}


def test_it_is_said_in_a_sentence_and_in_rows():
    known = turns(1.25)
    found = Company(known, {name: cost(name, known) for name in WORDS})

    assert "latency p99 1.25 (1.25 to 1.25 in 3 turns)" in words.in_words(found)
    assert [row[0] for row in words.rows(found)] == [*(["without", "with"] * 3), "without", "with / without"]
    unknown = Company(known, dict.fromkeys(WORDS, Quantity(None, "the load is not steady", lack=Lack.UNKNOWN)))
    assert words.in_words(unknown) == "what it costs is not known: the load is not steady"


CLAIM = SinkClaim("default", "keep", "none")
OURS = EngineManifest("scripted", ("x",), ".", shipped=False, sinks=(CLAIM,), results=OUR_SCHEMA)


class Answers:
    """In the place of Redis: so many reads are answered, the others not."""

    most = 10**9
    asked = 0

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
        """There is none."""


def moment(now_ms: int, field: Any = None) -> Moment:
    engine: Any = ScriptedEngine()
    return Moment(now_ms, 1, engine, None, 100, field)


def a_field() -> Field:
    client: Any = None
    return Field(None, None, KafkaAddress("nowhere"), "topic", client, ("a", "b"), lambda _: None)


def struck(monkeypatch, most: int):
    monkeypatch.setattr(Answers, "most", most)
    monkeypatch.setattr(Answers, "asked", 0)
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

    assert fault.needs == ("scripted leaves its results in command, not redis:compact",)


def test_a_world_without_redis_has_none():
    fault = create(replace(SPEC, sink="default", fault=parse("read-results@now")), OURS)
    fault.poll(moment(1))

    assert "n/a: there is no Redis in this run" in report_of(fault).proof
