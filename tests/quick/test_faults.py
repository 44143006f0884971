"""Faults: how they are written, when they strike, what counts as proof, and that a kill which missed says so."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from harness.engines.base import Reached
from harness.faults.base import default_fault, parse
from harness.faults.registry import create
from harness.model import EngineManifest, FaultSpec, Progress, SinkClaim, UsageError
from harness.wait import wait_until

POINTS = ("c1", "c2", "c3", "c4")
CLAIM = SinkClaim("default", "drop", "exactly-once", crash_points=POINTS)
MANIFEST = EngineManifest("scripted", ("x",), ".", shipped=False, sinks=(CLAIM,))
TOTAL = 1000


@dataclass
class ScriptedEngine:
    """An engine whose durable state the test moves by hand."""

    manifest: EngineManifest = MANIFEST
    plans: dict[int, bytes] = field(default_factory=dict)
    commits: set[int] = field(default_factory=set)
    story: list[str] = field(default_factory=list)
    at: Reached | None = None
    newest: Progress | None = None
    running: bool = True

    def alive(self) -> bool:
        return self.running

    def progress(self) -> Progress | None:
        return self.newest

    def kill(self) -> str:
        self.story.append("kill")
        self.running = False
        return "killed, and nothing is left"

    def restart(self) -> None:
        self.story.append("restart")
        self.running = True

    def freeze(self) -> None:
        self.story.append("freeze")

    def thaw(self) -> None:
        self.story.append("thaw")

    def arm(self, point: str, batch: int) -> None:
        self.story.append(f"arm {point} {batch}")

    def disarm(self) -> None:
        self.at = None
        self.story.append("disarm")

    def reached(self) -> Reached | None:
        return self.at

    def planned(self, batch: int) -> bytes | None:
        return self.plans.get(batch)

    def committed(self, batch: int) -> bool:
        return batch in self.commits


def progress(batch: int, done: int) -> Progress:
    return Progress(at_ms=batch, batch=batch, rows=1, offsets={0: done})


def poll(fault, engine) -> None:
    fault.poll(engine, engine.newest, TOTAL)


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("none", FaultSpec("none")),
        ("kill@c3:batch=3", FaultSpec("kill@c3:batch=3", "kill", point="c3", batch=3)),
        ("kill@c1", FaultSpec("kill@c1", "kill", point="c1", batch=0)),
        ("kill@batch=7", FaultSpec("kill@batch=7", "kill", batch=7)),
        ("kill@offset=50%", FaultSpec("kill@offset=50%", "kill", offset_share=0.5)),
        (" kill@offset=0.5% ", FaultSpec("kill@offset=0.5%", "kill", offset_share=0.005)),
    ],
)
def test_a_fault_reads_as_it_is_written(text, spec):
    assert parse(text) == spec


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "is no fault"),
        ("kil@c3", "nearest: 'kill'"),
        ("non", "nearest: 'none'"),
        ("kill", "when"),
        ("kill@", "when"),
        ("kill@c5", "c1, c2, c3, c4"),
        ("kill@ofset=50%", "nearest: 'offset'"),
        ("kill@c3:bach=3", "nearest: 'batch'"),
        ("kill@c3:batch=-1", "'-1' is not a whole number"),
        ("kill@c3:batch=", "'' is not a whole number"),
        ("kill@batch=x", "'x' is not a whole number"),
        ("kill@offset=50", "'50' is not a share"),
        ("kill@offset=0%", "'0%' is not a share"),
        ("kill@offset=100%", "'100%' is not a share"),
    ],
)
def test_a_fault_that_is_not_understood_is_named(text, named):
    with pytest.raises(UsageError) as wrong:
        parse(text)

    assert repr(text) in str(wrong.value)
    assert named in str(wrong.value)
    assert "kill@c3:batch=3" in str(wrong.value)


def test_the_default_is_the_kill_that_tells_most():
    assert default_fault(CLAIM).text == "kill@c3:batch=3"
    assert default_fault(SinkClaim("plain", "keep", "none")).text == "kill@offset=50%"


@pytest.mark.parametrize("point", ["c1", "c2", "c3"])
def test_a_kill_at_a_point_is_proved_by_the_replay_of_the_same_plan(point):
    engine, fault = ScriptedEngine(), create(parse(f"kill@{point}:batch=3"), MANIFEST, CLAIM)
    poll(fault, engine)
    assert fault.settled()

    engine.plans[4], engine.at = b"plan", Reached(point, 4, 1)
    poll(fault, engine)
    assert not fault.settled()
    assert not fault.busy()  # it was brought back within the same poll

    engine.commits.add(4)
    poll(fault, engine)

    report = fault.report()
    assert engine.story == [f"arm {point} 3", "kill", "disarm", "restart"]
    assert (report.landed, report.healed, report.replayed, report.batch) == (True, True, True, 4)
    assert "nothing is left" in report.proof
    assert fault.settled()


def test_a_replay_with_another_plan_is_no_replay():
    engine, fault = ScriptedEngine(), create(parse("kill@c3"), MANIFEST, CLAIM)
    engine.plans[0], engine.at = b"plan", Reached("c3", 0, 1)
    poll(fault, engine)
    engine.plans[0] = b"another plan"
    engine.commits.add(0)
    poll(fault, engine)

    assert fault.report().replayed is False
    assert "NOT replayed" in fault.report().proof


def test_a_batch_that_was_committed_when_it_died_is_no_kill_at_c3():
    engine, fault = ScriptedEngine(), create(parse("kill@c3"), MANIFEST, CLAIM)
    engine.plans[0], engine.at = b"plan", Reached("c3", 0, 1)
    engine.commits.add(0)
    poll(fault, engine)

    assert not fault.report().landed
    assert "batch 0 stood at c3, planned and committed" in fault.report().proof


def test_a_point_that_never_came_did_not_land():
    engine, fault = ScriptedEngine(), create(parse("kill@c3:batch=99"), MANIFEST, CLAIM)
    poll(fault, engine)
    fault.heal()

    report = fault.report()
    assert (report.landed, report.healed, report.reachable) == (False, True, True)
    assert "did not land: c3:batch=99 never came" in report.proof
    assert engine.story[-1] == "disarm"


def test_an_engine_that_does_not_come_back_is_not_healed():
    engine, fault = ScriptedEngine(), create(parse("kill@c3"), MANIFEST, CLAIM)
    engine.plans[0], engine.at = b"plan", Reached("c3", 0, 1)
    poll(fault, engine)
    fault.heal()

    assert fault.report().landed
    assert not fault.report().healed
    assert not fault.settled()


def hunted(engine, fault) -> None:
    """Poll until the thread has killed and the engine is back."""

    def is_back() -> bool:
        poll(fault, engine)
        return "restart" in engine.story

    wait_until(
        is_back,
        deadline_s=10,
        what="the kill at c4",
        state=lambda: str(engine.story),
        every_s=0.005,
    )


def test_between_batches_is_proved_by_the_next_plan():
    engine, fault = ScriptedEngine(), create(parse("kill@c4:batch=2"), MANIFEST, CLAIM)
    engine.plans[2], engine.at = b"plan", Reached("c4", 2, 1)
    poll(fault, engine)
    engine.commits.add(2)
    hunted(engine, fault)
    poll(fault, engine)
    assert not fault.settled()

    engine.plans[3] = b"next"
    poll(fault, engine)

    report = fault.report()
    assert engine.story == ["arm c4 2", "freeze", "kill", "disarm", "restart"]
    assert (report.landed, report.healed, report.replayed, report.batch) == (True, True, False, 2)


def test_between_batches_lets_go_when_the_next_plan_was_quicker():
    engine, fault = ScriptedEngine(), create(parse("kill@c4:batch=2"), MANIFEST, CLAIM)
    engine.plans, engine.commits = {2: b"plan", 3: b"next"}, {2}
    engine.at = Reached("c4", 2, 1)
    poll(fault, engine)
    wait_until(lambda: "thaw" in engine.story, deadline_s=10, what="the thaw", every_s=0.005)
    assert "kill" not in engine.story
    fault.heal()

    assert not fault.report().landed
    assert "missed 1 times" in fault.report().proof


def test_a_next_plan_that_slipped_through_is_not_hidden():
    class Slippery(ScriptedEngine):
        def kill(self) -> str:
            self.plans[3] = b"written while it was being killed"
            return super().kill()

    engine, fault = Slippery(), create(parse("kill@c4:batch=2"), MANIFEST, CLAIM)
    engine.plans, engine.commits, engine.at = {2: b"plan"}, {2}, Reached("c4", 2, 1)
    hunted(engine, fault)

    assert not fault.report().landed
    assert "batch 3 planned already" in fault.report().proof


def test_an_error_in_the_hunt_reaches_the_run():
    class Broken(ScriptedEngine):
        def freeze(self) -> None:
            raise RuntimeError("no signal today")

    engine, fault = Broken(), create(parse("kill@c4"), MANIFEST, CLAIM)
    engine.plans, engine.commits, engine.at = {0: b"plan"}, {0}, Reached("c4", 0, 1)

    with pytest.raises(RuntimeError, match="no signal today"):
        hunted(engine, fault)


@pytest.mark.parametrize(
    ("text", "before", "now"),
    [
        ("kill@offset=50%", progress(2, 499), progress(3, 500)),
        ("kill@batch=3", progress(2, 999), progress(3, 20)),
    ],
)
def test_a_kill_by_progress_strikes_at_its_time_and_sees_it_go_on(text, before, now):
    engine, fault = ScriptedEngine(newest=before), create(parse(text), MANIFEST, CLAIM)
    poll(fault, engine)
    assert engine.story == []

    engine.newest = now
    poll(fault, engine)
    assert engine.story == ["kill", "disarm", "restart"]
    poll(fault, engine)
    assert not fault.settled()

    engine.newest = progress(4, 1000)
    poll(fault, engine)

    report = fault.report()
    assert (report.landed, report.healed, report.replayed, report.batch) == (True, True, None, 3)


def test_an_engine_that_drained_before_is_not_killed():
    engine, fault = ScriptedEngine(newest=progress(1, TOTAL)), create(parse("kill@offset=50%"), MANIFEST, CLAIM)
    poll(fault, engine)

    assert engine.story == []
    assert not fault.report().landed
    assert "all had been done already" in fault.report().proof


@pytest.mark.parametrize(
    ("manifest", "claim", "text", "why"),
    [
        (
            MANIFEST,
            SinkClaim("plain", "keep", "none", ("c1",)),
            "kill@c3",
            "sink plain of scripted has no crash point",
        ),
        (EngineManifest("e", ("x",), ".", False, (CLAIM,), resumes=False), CLAIM, "kill@c3", "does not resume"),
        (EngineManifest("e", ("x",), ".", False, (CLAIM,), progress=False), CLAIM, "kill@offset=9%", "no progress"),
    ],
)
def test_what_an_engine_cannot_suffer_is_not_applicable(manifest, claim, text, why):
    engine, fault = ScriptedEngine(), create(parse(text), manifest, claim)
    poll(fault, engine)

    assert engine.story == []
    assert not fault.report().reachable
    assert not fault.report().landed
    assert why in fault.report().proof


def test_no_fault_is_no_fault():
    fault = create(parse("none"), MANIFEST, CLAIM)
    fault.heal()

    assert fault.settled()
    assert not fault.busy()
    assert not fault.report().landed
    assert fault.report().reachable
