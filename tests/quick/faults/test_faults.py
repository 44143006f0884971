"""Faults: how they are written, when they strike, what counts as proof, and that a kill which missed says so."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.engines.base import Engine, Member, Reached
from harness.faults import registry
from harness.faults.base import Fault
from harness.faults.combine import First, Sequenced
from harness.faults.members import is_driver_jvm, is_executor, is_python_worker, last_words
from harness.faults.registry import default_fault, parse
from harness.faults.run_at_poll import Moment
from harness.faults.strike import Strike, Struck
from harness.model import CRASH_POINTS, EngineManifest, FaultReport, FaultSpec, Progress, SinkClaim, UsageError, When
from harness.util.wait import wait_until
from tests.quick.cases import SPEC

CLAIM = SinkClaim("default", "drop", "exactly-once", crash_points=CRASH_POINTS)
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


def create(text: str, manifest: EngineManifest = MANIFEST, claim: SinkClaim = CLAIM) -> Fault:
    spec = replace(SPEC, fault=parse(text), sink=claim.name)
    return registry.create(spec, replace(manifest, sinks=(claim,)))


def moment(engine: ScriptedEngine, now_ms: int = 1, epoch_ms: int = 0) -> Moment:
    return Moment(now_ms, epoch_ms, cast(Engine, engine), engine.newest, TOTAL)


def poll(fault: Fault, engine: ScriptedEngine) -> None:
    fault.poll(moment(engine))


def report_of(fault: Fault) -> FaultReport:
    (report,) = fault.reports()
    return report


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("none", FaultSpec("none")),
        ("kill@c3:batch=3", FaultSpec("kill@c3:batch=3", "kill", When("point", "c3", 3))),
        ("kill@c1", FaultSpec("kill@c1", "kill", When("point", "c1"))),
        ("kill@c3:t>=40s", FaultSpec("kill@c3:t>=40s", "kill", When("point", "c3", seconds=40.0))),
        ("kill@c3:t>=+2s", FaultSpec("kill@c3:t>=+2s", "kill", When("point", "c3", seconds=2.0, relative=True))),
        ("kill@batch=7", FaultSpec("kill@batch=7", "kill", When("batch", batch=7))),
        ("kill@batch>=+7", FaultSpec("kill@batch>=+7", "kill", When("batch", batch=7, relative=True))),
        ("kill@sink.c2", FaultSpec("kill@sink.c2", "kill", When("point", "c2"))),
        ("kill@t>=1.5s", FaultSpec("kill@t>=1.5s", "kill", When("time", seconds=1.5))),
        ("kill@offset=50%", FaultSpec("kill@offset=50%", "kill", When("offset", share=0.5))),
        (" kill@offset=0.5% ", FaultSpec("kill@offset=0.5%", "kill", When("offset", share=0.005))),
    ],
)
def test_a_fault_reads_as_it_is_written(text, spec):
    assert parse(text) == spec


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "there is no fault"),
        ("kil@c3", "nearest: 'kill'"),
        ("non", "nearest: 'none'"),
        ("kill@", "moment is missing"),
        ("kill@c5", "c1, c2, c3, c4"),
        ("kill@ofset=50%", "nearest: 'offset'"),
        ("kill@c3:bach=3", "nearest: 'batch'"),
        ("kill@c3:t>=40", "t = '40'"),
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
    plain = SinkClaim("plain", "keep", "none")

    assert default_fault(MANIFEST, CLAIM, 30_000).text == "kill@c3:batch=3"
    assert default_fault(MANIFEST, plain, 30_000).text == "kill@offset=50%"
    in_group = replace(MANIFEST, progress_group="seldom")
    assert default_fault(in_group, plain, 30_000).text == "kill@t>=15000ms"
    assert default_fault(replace(MANIFEST, progress=False), plain, 30_000).text == "kill@t>=15000ms"
    assert default_fault(replace(MANIFEST, resumes=False), CLAIM, 30_000).text == "none"


@pytest.mark.parametrize("point", ["c1", "c2", "c3"])
def test_a_kill_at_a_point_is_proved_by_the_replay_of_the_same_plan(point):
    engine, fault = ScriptedEngine(), create(f"kill@{point}:batch=3")
    poll(fault, engine)
    assert fault.settled()

    engine.plans[4], engine.at = b"plan", Reached(point, 4, 1)
    poll(fault, engine)
    assert not fault.settled()
    assert not fault.busy()  # it was brought back within the same poll

    engine.commits.add(4)
    poll(fault, engine)

    report = report_of(fault)
    assert engine.story == [f"arm {point} 3", "kill", "disarm", "restart"]
    assert (report.landed, report.healed, report.replayed, report.batch) == (True, True, True, 4)
    assert "nothing is left" in report.proof
    assert fault.settled()


def test_a_point_that_waits_for_a_time_is_armed_then_and_takes_the_first_batch_that_comes():
    engine, fault = ScriptedEngine(), create("kill@c3:t>=40s")
    fault.poll(moment(engine, 1_750_000_000_000, 0))
    assert engine.story == [], "the load has not begun"
    fault.poll(moment(engine, 40_999, 1000))
    assert engine.story == []

    fault.poll(moment(engine, 41_000, 1000))
    assert engine.story == ["arm c3 0"]


def test_a_replay_with_another_plan_is_no_replay():
    engine, fault = ScriptedEngine(), create("kill@c3")
    engine.plans[0], engine.at = b"plan", Reached("c3", 0, 1)
    poll(fault, engine)
    engine.plans[0] = b"another plan"
    engine.commits.add(0)
    poll(fault, engine)

    assert report_of(fault).replayed is False
    assert "NOT replayed" in report_of(fault).proof


def test_a_batch_that_was_committed_when_it_died_is_no_kill_at_c3():
    engine, fault = ScriptedEngine(), create("kill@c3")
    engine.plans[0], engine.at = b"plan", Reached("c3", 0, 1)
    engine.commits.add(0)
    poll(fault, engine)

    assert not report_of(fault).landed
    assert "batch 0 was at c3, planned and committed" in report_of(fault).proof


def test_a_point_that_never_came_did_not_land():
    engine, fault = ScriptedEngine(), create("kill@c3:batch=99")
    poll(fault, engine)
    fault.heal(moment(engine))

    report = report_of(fault)
    assert (report.landed, report.healed, report.reachable) == (False, True, True)
    assert "did not land: c3:batch=99 never came" in report.proof
    assert "a job whose manifest has crash_points = ['c3'] must check for the file `crash_path`" in report.proof
    assert engine.story[-1] == "disarm"


def test_a_moment_that_never_came_names_how_far_the_job_was():
    engine = ScriptedEngine()
    by_batch, by_offset = create("kill@batch>=1999"), create("kill@offset>=50%")
    for fault in (by_batch, by_offset):
        poll(fault, engine)
        assert "never came: the job reported no progress" in report_of(fault).proof
    engine.newest = progress(batch=1200, done=300)
    for fault in (by_batch, by_offset):
        poll(fault, engine)
    assert report_of(by_batch).proof == "did not land: batch>=1999 never came: the last batch was 1,200"
    assert report_of(by_offset).proof == "did not land: offset>=0.5 never came: 300 of 1,000 records were done"


def test_a_batch_with_the_rest_of_all_records_passes_over_a_moment():
    engine, fault = ScriptedEngine(), create("kill@offset>=50%")
    engine.newest = replace(progress(batch=2, done=TOTAL), rows=700)
    poll(fault, engine)

    assert engine.story == []
    assert report_of(fault).proof == (
        "did not land: all records had already been processed when its moment came, because batch 2 had the last 700 "
        "of them; use an earlier moment, a longer --duration, or smaller batches (`maxOffsetsPerTrigger` in Spark)"
    )
    small = create("kill@offset>=50%")
    engine.newest = progress(batch=80, done=TOTAL)
    poll(small, engine)
    assert "when its moment came; use an earlier moment" in report_of(small).proof


def test_an_engine_that_does_not_come_back_is_not_healed():
    engine, fault = ScriptedEngine(), create("kill@c3")
    engine.plans[0], engine.at = b"plan", Reached("c3", 0, 1)
    poll(fault, engine)
    fault.heal(moment(engine))

    assert report_of(fault).landed
    assert not report_of(fault).healed
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
    engine, fault = ScriptedEngine(), create("kill@c4:batch=2")
    engine.plans[2], engine.at = b"plan", Reached("c4", 2, 1)
    poll(fault, engine)
    engine.commits.add(2)
    hunted(engine, fault)
    poll(fault, engine)
    assert not fault.settled()

    engine.plans[3] = b"next"
    poll(fault, engine)

    report = report_of(fault)
    assert engine.story == ["arm c4 2", "freeze", "kill", "disarm", "restart"]
    assert (report.landed, report.healed, report.replayed, report.batch) == (True, True, False, 2)


def test_between_batches_lets_go_when_the_next_plan_was_quicker():
    engine, fault = ScriptedEngine(), create("kill@c4:batch=2")
    engine.plans, engine.commits = {2: b"plan", 3: b"next"}, {2}
    engine.at = Reached("c4", 2, 1)
    poll(fault, engine)
    wait_until(lambda: "thaw" in engine.story, deadline_s=10, what="the thaw", every_s=0.005)
    assert "kill" not in engine.story
    fault.heal(moment(engine))

    assert not report_of(fault).landed
    assert "missed 1 times" in report_of(fault).proof


def test_a_next_plan_that_slipped_through_is_not_hidden():
    class Slippery(ScriptedEngine):
        def kill(self) -> str:
            self.plans[3] = b"written while it was being killed"
            return super().kill()

    engine, fault = Slippery(), create("kill@c4:batch=2")
    engine.plans, engine.commits, engine.at = {2: b"plan"}, {2}, Reached("c4", 2, 1)
    hunted(engine, fault)

    assert not report_of(fault).landed
    assert "batch 3 already planned" in report_of(fault).proof


def test_an_error_in_the_hunt_reaches_the_run():
    class Broken(ScriptedEngine):
        def freeze(self) -> None:
            raise RuntimeError("no signal today")

    engine, fault = Broken(), create("kill@c4")
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
    engine, fault = ScriptedEngine(newest=before), create(text)
    poll(fault, engine)
    assert engine.story == []

    engine.newest = now
    poll(fault, engine)
    assert engine.story == ["kill", "disarm", "restart"]
    poll(fault, engine)
    assert not fault.settled()

    engine.newest = progress(4, 1000)
    poll(fault, engine)

    report = report_of(fault)
    assert (report.landed, report.healed, report.replayed, report.batch) == (True, True, None, 3)


def test_an_engine_that_drained_before_is_not_killed():
    engine, fault = ScriptedEngine(newest=progress(1, TOTAL)), create("kill@offset=50%")
    poll(fault, engine)

    assert engine.story == []
    assert not report_of(fault).landed
    assert "already been processed" in report_of(fault).proof


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
    engine, fault = ScriptedEngine(), create(text, manifest, claim)
    poll(fault, engine)

    assert engine.story == []
    assert not report_of(fault).reachable
    assert not report_of(fault).landed
    assert why in report_of(fault).proof


def test_no_fault_is_no_fault():
    fault = create("none")
    fault.heal(moment(ScriptedEngine()))

    assert fault.settled()
    assert fault.over()
    assert not fault.busy()
    assert fault.reports() == ()


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("kill@now; kil@now", "nearest: 'kill'"),
        ("repeat(kill@now)", "needs a number of repetitions first"),
        ("repeat(3)", "has no steps"),
        ("any(kill@now", "not closed"),
        ("kill@now)", "no opening one"),
        ("kill(for=3s)@now", "kill has no option"),
        ("stagger(soon; kill@now)", "not a time"),
        ("anny(kill@now)", "nearest: 'any'"),
    ],
)
def test_a_plan_that_is_not_understood_is_named(text, named):
    with pytest.raises(UsageError) as wrong:
        parse(text)

    assert named in str(wrong.value)


def kills(engine: ScriptedEngine) -> int:
    return engine.story.count("kill")


def test_steps_wait_one_after_the_other_and_relative_moments_count_from_there():
    engine, fault = ScriptedEngine(newest=progress(3, 100)), create("kill@batch>=3; kill@batch>=+2")
    poll(fault, engine)
    assert kills(engine) == 1

    engine.newest = progress(5, 200)  # the first goes on; only now the second begins to wait
    poll(fault, engine)
    assert kills(engine) == 1
    engine.newest = progress(6, 300)
    poll(fault, engine)
    assert kills(engine) == 1
    engine.newest = progress(7, 400)
    poll(fault, engine)
    assert kills(engine) == 2
    assert not fault.over()
    engine.newest = progress(8, 500)
    poll(fault, engine)

    assert fault.over()
    assert [report.landed for report in fault.reports()] == [True, True]


def test_repeat_strikes_so_often():
    engine, fault = ScriptedEngine(), create("repeat(3; kill@now)")
    for done in range(1, 10):
        engine.newest = progress(done, done)
        poll(fault, engine)

    assert kills(engine) == 3
    assert len(fault.reports()) == 3


def test_of_any_only_the_first_to_come_strikes():
    engine, fault = ScriptedEngine(newest=progress(2, 900)), create("any(kill@batch>=9; kill@offset>=50%)")
    poll(fault, engine)
    engine.newest = progress(9, 950)
    poll(fault, engine)

    assert kills(engine) == 1
    assert fault.over()
    assert [report.spec.text for report in fault.reports()] == ["kill@offset>=50%"]


def test_a_stagger_pauses_by_the_seed():
    spellings = (
        "stagger(10s; kill@now; kill@now)",
        "stagger(10s;kill@now;kill@now)",
        " stagger( 10s ;kill@now ; kill@now) ",
    )
    strikes = []
    for each in map(create, spellings):
        engine, at = ScriptedEngine(), []
        for now_ms in range(0, 40_000, 50):
            engine.newest = progress(now_ms, now_ms // 50)
            before = kills(engine)
            each.poll(moment(engine, now_ms))
            at += [now_ms] * (kills(engine) - before)
        strikes.append(at)

    assert strikes[0] == strikes[1] == strikes[2]
    assert 0 < strikes[0][0] < strikes[0][1] < 20_100


class Scripted(Strike):
    """A strike whose effects the test turns on and off."""

    hold_ms = 1000.0

    def __init__(self) -> None:
        self.story: list[str] = []
        self.seen_landed = self.seen_healed = ""

    def inject(self, now: Moment) -> str:
        self.story.append("inject")
        return "struck"

    def landed(self, now: Moment) -> str:
        return self.seen_landed

    def heal(self, now: Moment) -> None:
        self.story.append("heal")

    def healed(self, now: Moment) -> str:
        return self.seen_healed


def on_course(when: When) -> tuple[ScriptedEngine, Scripted, Struck]:
    strike = Scripted()
    return ScriptedEngine(), strike, Struck(FaultSpec("scripted", "scripted", when), strike)


def test_a_strike_lands_holds_and_heals():
    engine, strike, fault = on_course(When("time", seconds=5))
    course = []
    for now_ms in range(1000, 9000, 100):
        strike.seen_landed = "seen" if now_ms >= 6500 else ""
        strike.seen_healed = "gone" if now_ms >= 8000 else ""
        fault.poll(moment(engine, now_ms, 1000))
        course.append((now_ms, fault.settled(), tuple(strike.story)))

    report = report_of(fault)
    assert (report.at_ms, report.landed_ms, report.healed_ms) == (6000, 6500, 8000)
    assert (report.landed, report.healed, fault.over()) == (True, True, True)
    assert report.proof == "struck; seen; gone"
    assert (7400, False, ("inject",)) in course
    assert (7500, False, ("inject", "heal")) in course


def test_a_strike_without_effect_has_not_landed_and_is_undone():
    engine, strike, fault = on_course(When())
    strike.seen_healed = "gone"
    for now_ms in range(0, 30_000, 100):
        fault.poll(moment(engine, now_ms, 1))

    assert not report_of(fault).landed
    assert report_of(fault).landed_ms == 0
    assert "no effect was seen" in report_of(fault).proof
    assert strike.story == ["inject", "heal"]


def test_a_strike_in_its_middle_is_undone_at_the_end_of_a_run():
    engine, strike, fault = on_course(When())
    strike.seen_landed = "seen"
    fault.poll(moment(engine, 5, 1))
    fault.heal(moment(engine, 10, 1))

    assert strike.story == ["inject", "heal"]
    assert not report_of(fault).healed


def test_a_strike_at_a_point_holds_the_job_there_until_it_has_landed():
    engine, strike, fault = on_course(When("point", "c2", 4))
    fault.poll(moment(engine, 0, 1))
    assert engine.story == ["arm c2 4"]
    engine.at = Reached("c2", 5, 1)
    fault.poll(moment(engine, 1, 1))
    assert engine.story == ["arm c2 4"]
    strike.seen_landed = "seen"
    fault.poll(moment(engine, 2, 1))

    assert engine.story == ["arm c2 4", "disarm"]
    assert report_of(fault).batch == 5


def test_a_process_has_its_part_by_its_command_line():
    commands = {
        "python worker": ("python3", "-m", "pyspark.daemon"),
        "executor": ("java", "-cp", "x", "org.apache.flink.runtime.taskexecutor.TaskManagerRunner"),
        "driver": ("/usr/bin/java", "org.apache.spark.deploy.SparkSubmit"),
        "job": ("python3", "job.py"),
    }
    parts = {"python worker": is_python_worker, "executor": is_executor, "driver": is_driver_jvm}

    for name, command in commands.items():
        assert [part for part, is_it in parts.items() if is_it(Member(7, 1, command))] == (
            [name] if name in parts else []
        )


@pytest.mark.parametrize(
    ("log", "words"),
    [
        (("ERROR a: CONCURRENT_QUERY", "java.io.IOException: disk full"), "ERROR a: CONCURRENT_QUERY"),
        (("Traceback (most recent call last):", "ValueError: torn"), "ValueError: torn"),
        ((), "no message"),
    ],
)
def test_a_driver_s_last_words_are_the_conflict_or_the_error_at_the_end_of_its_log(log, words):
    driver: Any = SimpleNamespace(tail=lambda lines: [*log][-lines:])

    assert words in last_words(driver)


def test_an_engine_without_executors_can_not_lose_one():
    missing = create("kill-executor@now").needs
    assert missing == ("scripted has no executors: its manifest lacks executors = true",)
    assert create("kill-executor@now", replace(MANIFEST, executors=True)).needs == ()


def test_a_batch_that_is_done_before_the_second_kill_of_a_replay_was_no_kill_in_recovery():
    engine, fault = ScriptedEngine(plans={4: b"plan"}), create("kill-in-recovery@c3:batch=3")
    poll(fault, engine)
    engine.at = Reached("c3", 4, 1)
    poll(fault, engine)
    assert kills(engine) == 1
    engine.commits.add(4)
    poll(fault, engine)

    assert (fault.over(), report_of(fault).landed, kills(engine)) == (True, False, 1)
    assert "batch 4 was done before it could be killed again" in report_of(fault).proof


def test_a_consumer_group_shows_offsets_and_no_batches():
    grouped = replace(MANIFEST, progress_group="group")

    assert [create(f"kill@{moment}", grouped).needs for moment in ("offset=50%", "t>=1s")] == [(), ()]
    assert "commits offsets to a consumer group" in create("kill@batch=3", grouped).needs[0]


@pytest.mark.parametrize("plan", [Sequenced, First])
def test_a_plan_is_busy_while_one_of_its_steps_is(plan):
    idle, busy = (SimpleNamespace(busy=lambda is_busy=is_busy: is_busy) for is_busy in (False, True))

    assert plan([idle, busy]).busy()
    assert not plan([idle, idle]).busy()


def test_any_is_over_when_the_chosen_one_is():
    waiting = SimpleNamespace(poll=lambda _: None, over=lambda: False, settled=lambda: True)
    chosen: Any = SimpleNamespace(poll=lambda _: None, settled=lambda: False, ended=False)
    chosen.over = lambda: chosen.ended
    first = First(cast(Any, [waiting, chosen]))
    assert not first.over()
    first.poll(moment(ScriptedEngine()))
    assert not first.over()
    chosen.ended = True

    assert first.over()


@pytest.mark.parametrize(("patience", "struck_for_ms"), [(1.0, 1000), (4.0, 4000)])
def test_an_effect_is_waited_for_longer_on_a_slow_machine(patience, struck_for_ms):
    strike = Scripted()
    strike.land_within_ms = 1000.0
    fault = Struck(FaultSpec("scripted", "scripted", When()), strike, patience)
    engine = ScriptedEngine()
    for now_ms, story in ((1, ["inject"]), (struck_for_ms + 1, ["inject"]), (struck_for_ms + 2, ["inject", "heal"])):
        fault.poll(moment(engine, now_ms, 1))
        assert strike.story[:2] == story
