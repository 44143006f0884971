"""The network family on links and connections that the test moves by hand: what lands, and only with proof."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import pytest

from harness.faults import network, registry
from harness.faults.base import Fault
from harness.faults.network import Slowed
from harness.faults.registry import FAULTS, parse
from harness.faults.run_at_poll import Moment
from harness.model import EngineManifest, FaultReport, SinkClaim, UsageError
from harness.services.ping import Answered, complete, question
from harness.services.proxy import CHUNK_BYTES, SIDES, Statistics, Toxic
from tests.quick.cases import SPEC

MANIFEST = EngineManifest("scripted", ("x",), ".", shipped=False, sinks=(SinkClaim("default", "keep", "exactly-once"),))


@dataclass
class Scene:
    """One link, its proxy's statistics, Redis' statistics of commands, and what a connection of ours suffers."""

    statistics: Statistics = field(default_factory=lambda: Statistics(connections=2, open=2))
    calls: dict[str, int] = field(default_factory=dict)
    answer_ms: float | None = 1.0
    reset: bool = False
    story: list[str] = field(default_factory=list)
    now_ms: int = 1000

    def moment(self) -> Moment:
        stats = {f"cmdstat_{name.lower()}": {"calls": count} for name, count in self.calls.items()}
        results = SimpleNamespace(info=lambda section: stats)
        link = ScriptedLink(self)
        world = SimpleNamespace(links={"redis": link, "kafka": link}, results=results)
        engine = SimpleNamespace(disarm=lambda: None, arm=lambda *_: None, reached=lambda: None)
        return Moment(self.now_ms, 1, engine, None, 1000, world)  # type: ignore[arg-type]

    def poll(self, fault: Fault, after_ms: int = 50) -> FaultReport:
        self.now_ms += after_ms
        fault.poll(self.moment())
        (report,) = fault.reports()
        return report


@dataclass
class ScriptedLink:
    scene: Scene
    address: str = "127.0.0.1:1"

    def statistics(self) -> Statistics:
        return self.scene.statistics

    def trouble(self, toxic, sides) -> Statistics:
        self.scene.story.append(f"trouble {'+'.join(sides)}")
        return self.scene.statistics

    def clear(self) -> Statistics:
        self.scene.story.append("clear")
        return self.scene.statistics

    def reset(self) -> Statistics:
        self.scene.story.append("reset")
        before = self.scene.statistics
        self.scene.statistics = replace(before, resets=before.resets + before.open, open=0)
        return self.scene.statistics


@pytest.fixture
def scene(monkeypatch):
    scene = Scene()

    class ScriptedPing:
        def __init__(self, service, address) -> None: ...

        def ask(self, size_bytes=0):
            return 20

        def hear(self, deadline_s):
            if scene.reset:
                raise ConnectionResetError
            return None if scene.answer_ms is None else 6

        def measure(self, size_bytes=0, deadline_s=0.0):
            self.hear(deadline_s)
            return scene.answer_ms and Answered(scene.answer_ms, 20 + size_bytes, 6 + size_bytes)

        def close(self) -> None: ...

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

    monkeypatch.setattr(network, "Ping", ScriptedPing)
    return scene


def create(text: str, **changes) -> Fault:
    return registry.create(replace(SPEC, fault=parse(text), sink="default", **changes), MANIFEST)


def test_what_a_toxic_costs_at_least():
    assert Toxic(delay_ms=200).least_ms(20) == 200
    assert Toxic(kbps=256).least_ms(640) == 0  # one piece, and nobody waits after it
    assert Toxic(kbps=256).least_ms(8000) == pytest.approx(240)
    assert Toxic(slice_bytes=100, gap_ms=2).least_ms(1000) == pytest.approx(18)
    assert Toxic(kbps=8, slice_bytes=5, gap_ms=1).least_ms(100) == pytest.approx(95)
    assert Toxic().piece_bytes() == CHUNK_BYTES


def test_a_probe_of_a_link_that_cuts_answers_into_pieces_is_long_enough_to_be_measured():
    toxic = Toxic(slice_bytes=100, gap_ms=2)
    strike = Slowed("redis", SIDES, toxic, 1000.0, "sliced")

    assert toxic.least_ms(strike._size_bytes) == pytest.approx(78)


def test_only_what_a_plan_names_is_led_through_a_proxy():
    assert registry.links(parse("none")) == set()
    assert registry.links(parse("kill@now")) == set()
    assert registry.links(parse("net-latency@now")) == {"redis"}
    assert registry.links(parse("any(kill@now; net-reset(link=kafka)@now)")) == {"kafka"}
    assert registry.links(parse("redis-reset-reply@now; repeat(2; net-limit(link=kafka)@now)")) == {"redis", "kafka"}


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("net-latency(link=redi)@now", "link = 'redi' is not one of kafka, redis (nearest: 'redis')"),
        ("net-latency(side=up)@now", "side = 'up' is not one of request, reply, both"),
        ("net-latency(ms=fast)@now", "'fast' is not a whole number"),
        ("net-latency(for=5)@now", "'5' is not a time"),
        ("redis-reset-reply(link=kafka)@now", "redis-reset-reply has no option"),
        ("net-limit@c2", "can't wait for c2"),
    ],
)
def test_what_is_not_understood_is_named(text, named):
    with pytest.raises(UsageError) as wrong:
        create(text)

    assert named in str(wrong.value)


@pytest.mark.parametrize(
    ("text", "changes", "why"),
    [
        ("net-reset@now", {"redis": "redis://elsewhere/0"}, "existing server for redis"),
        ("net-reset(link=kafka)@now", {"kafka": "elsewhere:9092"}, "existing server for kafka"),
        ("redis-reset-reply@now", {"redis": "redis://elsewhere/0"}, "existing server for redis"),
    ],
)
def test_a_strangers_service_is_not_led_through_a_proxy(scene, text, changes, why):
    report = scene.poll(create(text, **changes))

    assert not report.reachable
    assert why in report.proof
    assert scene.story == []


def test_the_fake_engine_has_no_links():
    manifest = replace(MANIFEST, id="fake", command=())
    fault = registry.create(replace(SPEC, fault=parse("net-reset@now"), sink="default"), manifest)

    assert not fault.reports()[0].reachable


def test_latency_lands_when_an_old_connection_suffers_it_and_is_over_when_it_is_fast_again(scene):
    fault = create("net-latency(for=1s, side=reply)@now")
    assert not scene.poll(fault).landed
    scene.answer_ms = 150.0
    assert not scene.poll(fault).landed
    scene.answer_ms = 204.0
    landed = scene.poll(fault)
    scene.poll(fault, 900)
    assert scene.story == ["trouble reply"]
    scene.poll(fault, 200)
    assert scene.story == ["trouble reply", "clear"]
    assert not scene.poll(fault).healed
    scene.answer_ms = 2.0
    healed = scene.poll(fault)

    assert landed.landed
    assert healed.healed
    assert "answered in 1.0 ms; the same connection now took 204 ms for a probe (at least 200 ms)" in healed.proof


def test_latency_that_no_connection_of_the_engine_suffers_has_not_landed(scene):
    fault = create("net-latency@now")
    scene.poll(fault)
    scene.answer_ms, scene.statistics = 500.0, Statistics(open=1)

    assert not scene.poll(fault).landed


def test_jitter_is_seen_in_how_far_answers_differ(scene):
    fault = create("net-jitter(for=1s)@now")
    for _ in range(20):
        scene.answer_ms = 200.0
        assert not scene.poll(fault).landed
    for answer_ms in (10.0, 150.0):
        scene.answer_ms = answer_ms
        report = scene.poll(fault)

    assert report.landed
    assert "took 10 to 200 ms" in report.proof


def test_a_black_hole_lands_when_nothing_came_back_and_bytes_of_the_engine_are_gone(scene):
    fault = create("net-blackhole(for=1s, side=request)@now")
    scene.poll(fault)
    scene.answer_ms, scene.statistics = None, replace(scene.statistics, swallowed={"request": 20})
    assert not scene.poll(fault, 500).landed
    assert not scene.poll(fault, 900).landed  # only ours
    scene.statistics = replace(scene.statistics, swallowed={"request": 1020})
    landed = scene.poll(fault)
    scene.answer_ms = 1.0
    scene.poll(fault, 1100)
    healed = scene.poll(fault)

    assert landed.landed
    (silent_s,) = re.findall(r"no answer for ([\d.]+) s", landed.proof)
    assert 1.0 < float(silent_s) < 5.0
    assert "1,000 bytes of the engine are gone; 1 connection of it still open" in landed.proof
    assert healed.healed


def test_a_black_hole_that_lets_an_answer_through_is_none(scene):
    fault = create("net-blackhole@now")
    scene.poll(fault)
    scene.statistics = replace(scene.statistics, swallowed={"request": 1020})

    assert not scene.poll(fault, 2000).landed


def test_a_reset_lands_on_the_engine_and_on_ours(scene):
    fault = create("net-reset@now")
    scene.statistics = Statistics(open=1)  # ours alone: the engine is between two connections
    assert not scene.poll(fault).landed
    scene.statistics = Statistics(open=3)
    assert not scene.poll(fault).landed
    scene.reset = True
    report = scene.poll(fault)
    scene.reset = False

    assert report.landed
    assert "2 connections of the engine, and ours, which raised ConnectionResetError" in report.proof
    scene.poll(fault)
    assert scene.poll(fault).healed


def struck(scene: Scene, **changes) -> None:
    scene.statistics = replace(scene.statistics, struck=1, resets=1, **changes)


def test_a_lost_reply_lands_when_redis_has_executed_more_than_was_answered(scene):
    scene.calls = {"HINCRBY": 100, "PING": 7}
    scene.statistics = replace(scene.statistics, answered={"HINCRBY": 100})
    fault = create("redis-reset-reply@now")
    assert not scene.poll(fault).landed
    struck(scene, answered={"HINCRBY": 140}, unanswered={"HINCRBY": 25}, swallowed={"reply": 100})
    scene.calls = {"HINCRBY": 164, "PING": 9}
    assert not scene.poll(fault).landed  # one of them was never executed
    scene.calls = {"HINCRBY": 165, "PING": 9}
    report = scene.poll(fault)

    assert report.landed
    assert "1 connection reset by the proxy, which dropped 100 bytes of replies" in report.proof
    assert "executed 25 of 25 HINCRBY that were never answered" in report.proof


def test_a_reset_without_anything_executed_is_no_lost_reply(scene):
    fault = create("redis-reset-reply@now")
    scene.poll(fault)
    struck(scene)

    assert not scene.poll(fault).landed


def test_so_many_lost_replies_land_when_all_are_lost(scene):
    fault = create("redis-reset-reply(times=2)@now")
    scene.poll(fault)
    struck(scene, unanswered={"HSET": 1})
    scene.calls = {"HSET": 2}
    assert not scene.poll(fault).landed
    scene.statistics = replace(scene.statistics, struck=2)

    assert scene.poll(fault).landed


def test_a_cut_tells_what_of_the_pipeline_was_executed(scene):
    fault = create("net-limit(bytes=500)@now")
    scene.poll(fault)
    struck(scene, unanswered={"HINCRBY": 7, "HSET": 2}, ending=1)
    scene.calls = {"HINCRBY": 5}
    assert not scene.poll(fault).landed  # Redis is not yet through with it
    scene.statistics = replace(scene.statistics, ending=0)
    scene.calls = {"HINCRBY": 7}
    report = scene.poll(fault)

    assert report.landed
    assert "executed 7 of 7 HINCRBY, 0 of 2 HSET that were never answered" in report.proof
    assert scene.story == ["trouble request"]


@pytest.mark.parametrize("kind", [kind for kind in FAULTS.values() if kind.family == "network"], ids=lambda k: k.name)
def test_each_of_the_family_is_told_in_the_catalogue(kind):
    assert kind.what
    assert kind.correct
    assert kind.links
    assert "embedded" in kind.needs
    assert create(f"{kind.name}@t>=1s").needs == ()


def test_answers_are_whole_only_when_their_last_byte_is_there():
    asked = question("redis", 3)
    assert asked.data == b"*2\r\n$4\r\nECHO\r\n$3\r\n...\r\n"
    assert not complete("redis", b"$3\r\n...\r", asked.answers)
    assert complete("redis", b"$3\r\n...\r\n", asked.answers)

    two = question("kafka", 800)
    frame = b"\x00\x00\x00\x02ab"
    assert two.answers == 2
    assert not complete("kafka", frame + frame[:-1], two.answers)
    assert complete("kafka", frame + frame, two.answers)


def test_jitter_is_over_when_no_answer_takes_half_of_it(scene):
    fault = create("net-jitter(for=1s)@now")
    for answer_ms in (200.0, 10.0) * network.JITTER_POLLS:
        scene.answer_ms = answer_ms
        scene.poll(fault)
    scene.poll(fault, 1100)
    assert scene.story[-1] == "clear"
    healed = []
    for answer_ms in (100.0, 99.0):
        scene.answer_ms = answer_ms
        healed.append([scene.poll(fault).healed for _ in range(network.JITTER_POLLS + 1)][-1])

    assert healed == [False, True]
