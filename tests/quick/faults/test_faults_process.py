"""The process family: each fault strikes, lands only with its proof, and heals."""

from __future__ import annotations

import signal
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from harness.engines.base import Member, Reached
from harness.faults.base import Context, Fault
from harness.faults.members import SLOW_MS, is_driver_jvm, is_executor, is_python_worker
from harness.faults.process import KINDS
from harness.faults.registry import FAULTS, parse
from harness.faults.run_at_poll import Moment
from harness.model import Progress, UsageError
from tests.quick.cases import SPEC
from tests.quick.faults.test_faults import CLAIM, MANIFEST, TOTAL, ScriptedEngine, create, progress, report_of

PYTHON = Member(10, 1, ("/usr/bin/python3", "job.py"), leads=True)
JVM = Member(11, 10, ("/usr/lib/jvm/bin/java", "org.apache.spark.deploy.SparkSubmit", "pyspark-shell"))
EXECUTORS = tuple(Member(pid, 11, ("/usr/lib/jvm/bin/java", "x.CoarseGrainedExecutorBackend")) for pid in (20, 21))
DAEMON, WORKER = (Member(pid, parent, ("python3", "-m", "pyspark.daemon")) for pid, parent in ((30, 11), (31, 30)))
SPARK = (PYTHON, JVM)
LOST = ("The query failed: [CONCURRENT_STREAM_LOG_UPDATE] Concurrent update", "bye")
ON_CLUSTER = replace(MANIFEST, ivy="spark")
SPEC_ON_CLUSTER = replace(SPEC, master="local-cluster[2,1,1024]")


@dataclass
class Kept:
    """A ghost as the test wants it."""

    there: tuple[Member, ...] = ()
    story: list[str] = field(default_factory=list)
    code: int | None = None
    newest: Progress | None = None
    words: tuple[str, ...] = LOST

    def alive(self) -> bool:
        return self.code is None

    def exit_code(self) -> int | None:
        return self.code

    def members(self) -> tuple[Member, ...]:
        return self.there if self.alive() else ()

    def signal(self, number: signal.Signals, pids) -> None:
        self.story.append(f"{number.name} {sorted(pids)}")

    def told(self) -> Progress | None:
        return self.newest

    def tail(self, lines: int) -> tuple[str, ...]:
        return self.words[-lines:]

    def stop(self) -> None:
        self.story.append("stop")
        self.code = 0 if self.code is None else self.code


@dataclass
class WithMembers(ScriptedEngine):
    """Signals are noted; the test says what they do."""

    there: tuple[Member, ...] = SPARK
    kept: Kept = field(default_factory=Kept)
    code: int = 0
    words: tuple[str, ...] = LOST

    def members(self) -> tuple[Member, ...]:
        return self.there

    def exit_code(self) -> int | None:
        return None if self.running else self.code

    def tail(self, lines: int) -> tuple[str, ...]:
        return self.words[-lines:]

    def signal(self, number: signal.Signals, pids) -> None:
        self.story.append(f"{number.name} {sorted(pids)}")

    def detach(self) -> Kept:
        self.story.append("set aside")
        self.kept.there, self.running = self.there, False
        return self.kept

    def start_second(self) -> Kept:
        self.story.append("second")
        return self.kept

    def stop_all(self, *, stopped: bool) -> None:
        self.there = tuple(replace(member, stopped=stopped) for member in self.there)


def at(fault, engine, now_ms) -> None:
    fault.poll(Moment(now_ms, 1, engine, engine.newest, TOTAL))


def engine(**changes):
    return WithMembers(newest=progress(3, 300), **changes)


def test_stop_asks_the_driver_alone_and_restarts_what_has_ended():
    spark, fault = engine(), create("stop@now")
    at(fault, spark, 1)
    assert spark.story == ["SIGTERM [10]"]
    assert fault.busy()

    at(fault, spark, 50)
    assert not report_of(fault).landed
    spark.running = False
    at(fault, spark, 100)
    at(fault, spark, 150)
    assert spark.story == ["SIGTERM [10]", "disarm", "restart"]
    assert not fault.busy()
    assert not fault.over()

    spark.newest = progress(4, 400)
    at(fault, spark, 200)

    report = report_of(fault)
    assert (report.landed, report.healed) == (True, True)
    assert "exit code 0, a clean stop" in report.proof
    assert "from 300 to 400 records" in report.proof


def test_a_restart_has_the_time_that_the_manifest_gives_a_start():
    fault: Any = create("stop@now", replace(MANIFEST, ready_s=90.0))

    assert fault._strike.heal_within_ms == 90_000 + SLOW_MS


def test_an_end_in_disorder_is_told():
    spark, fault = engine(code=1), create("stop@now")
    at(fault, spark, 1)
    spark.running = False
    at(fault, spark, 2)

    assert "exit code 1, not cleanly" in report_of(fault).proof


def test_an_engine_that_does_not_stop_when_asked_is_killed_and_nothing_landed():
    spark, fault = engine(), create("stop@now")
    at(fault, spark, 1)
    at(fault, spark, 100_000)

    assert spark.story == ["SIGTERM [10]", "kill", "disarm", "restart"]
    assert not report_of(fault).landed


@pytest.mark.parametrize(("name", "pids"), [("pause", [10, 11]), ("pause-jvm", [11])])
def test_a_pause_lands_only_when_all_stand_still_and_ends_when_none_does(name, pids):
    spark, fault = engine(), create(f"{name}(for=3s)@now")
    at(fault, spark, 1)
    assert spark.story == [f"SIGSTOP {pids}"]
    spark.there = tuple(replace(m, stopped=m.pid in pids[1:]) for m in spark.there)
    at(fault, spark, 2)
    assert not report_of(fault).landed
    spark.there = tuple(replace(m, stopped=m.pid in pids) for m in spark.there)
    at(fault, spark, 3)
    assert report_of(fault).landed

    at(fault, spark, 2_900)
    assert spark.story == [f"SIGSTOP {pids}"]
    at(fault, spark, 3_003)
    assert spark.story[-1] == f"SIGCONT {pids}"
    at(fault, spark, 3_050)
    assert not report_of(fault).healed

    spark.stop_all(stopped=False)
    at(fault, spark, 3_100)
    report = report_of(fault)
    assert (report.landed, report.healed, report.healed_ms - report.at_ms) == (True, True, 3_099)
    assert f"state T: {', '.join(map(str, pids))}" in report.proof


def test_a_pause_ends_with_the_run():
    spark, fault = engine(), create("pause@now")
    at(fault, spark, 1)
    spark.stop_all(stopped=True)
    at(fault, spark, 2)
    fault.heal(Moment(3, 1, spark, spark.newest, TOTAL))

    assert spark.story[-1] == "SIGCONT [10, 11]"


@pytest.mark.parametrize(
    ("text", "there"),
    [("pause-jvm@now", (PYTHON,)), ("kill-jvm@now", (PYTHON,)), ("kill-python@now", SPARK)],
)
def test_what_is_not_there_is_not_applicable_and_nothing_is_done(text, there):
    spark, fault = engine(there=there), create(text)
    at(fault, spark, 1)

    report = report_of(fault)
    assert (spark.story, report.reachable, report.landed, report.healed) == ([], False, False, True)
    assert "n/a: scripted has no" in report.proof
    assert fault.over()


def test_a_python_worker_is_taken_and_not_the_daemon_that_makes_them():
    spark, fault = engine(there=(*SPARK, DAEMON, WORKER)), create("kill-python@now")
    at(fault, spark, 1)
    assert spark.story == ["SIGKILL [31]"]
    at(fault, spark, 2)
    assert not report_of(fault).landed

    spark.there = (*SPARK, DAEMON)
    at(fault, spark, 3)
    assert report_of(fault).landed
    at(fault, spark, 4)
    assert not fault.over()
    spark.newest = progress(4, 400)
    at(fault, spark, 5)
    at(fault, spark, 6)

    assert fault.over()
    assert "process 31 is gone" in report_of(fault).proof


def test_an_executor_is_replaced():
    context = Context(SPEC_ON_CLUSTER, ON_CLUSTER, CLAIM)
    spark, fault = engine(there=(*SPARK, *EXECUTORS)), FAULTS["kill-executor"].make(parse("kill-executor@now"), context)
    at(fault, spark, 1)
    assert spark.story == ["SIGKILL [21]"]
    spark.there = (*SPARK, EXECUTORS[0])
    at(fault, spark, 2)
    spark.newest = progress(4, 400)
    at(fault, spark, 3)
    at(fault, spark, 4)
    assert not fault.over()
    spark.there = (*spark.there, replace(EXECUTORS[1], pid=22))
    at(fault, spark, 5)

    assert "22 replaced it; it went on" in report_of(fault).proof


LOST_TASK = (
    "WARN TaskSetManager: [queryId = 1] [batchId = 4] Lost task 1.0 in stage 9.0 (TID 31) (127.0.0.1 executor 1): "
    "TaskKilled (streamgauge kill-task)"
)


def test_a_killed_task_is_proved_by_the_log_of_spark_and_by_its_later_attempt():
    context = Context(SPEC_ON_CLUSTER, replace(ON_CLUSTER, shipped=True), CLAIM)
    spark, fault = engine(), FAULTS["kill-task"].make(parse("kill-task@now"), context)
    at(fault, spark, 1)
    assert spark.story == ["arm task 0"]
    spark.at = Reached("task", 0, 2)
    at(fault, spark, 2)
    assert not report_of(fault).landed  # the job says so, and Spark has not logged it
    spark.words = (LOST_TASK,)
    at(fault, spark, 3)
    assert (report_of(fault).landed, report_of(fault).batch) == (True, 4)
    at(fault, spark, 4)
    spark.newest = progress(4, 400)
    at(fault, spark, 5)
    assert "disarm" not in spark.story  # the job still waits for the later attempt
    spark.at = Reached("task-again", 0, 6)
    at(fault, spark, 6)
    at(fault, spark, 7)

    assert spark.story == ["arm task 0", "disarm"]
    assert report_of(fault).healed
    assert "Lost task 1.0 in stage 9.0 (TID 31)" in report_of(fault).proof
    assert "a later attempt of the same task succeeded; it went on from 300 to 400" in report_of(fault).proof


def test_a_task_that_is_not_killed_in_time_has_not_landed():
    context = Context(SPEC_ON_CLUSTER, replace(ON_CLUSTER, shipped=True), CLAIM)
    spark, fault = engine(), FAULTS["kill-task"].make(parse("kill-task@now"), context)
    for second in range(600):
        at(fault, spark, second * 1000)

    assert fault.over()
    assert not report_of(fault).landed
    assert spark.story == ["arm task 0", "disarm"]


def test_a_task_that_is_not_run_again_is_no_recovery():
    context = Context(SPEC_ON_CLUSTER, replace(ON_CLUSTER, shipped=True), CLAIM)
    spark, fault = engine(words=(LOST_TASK,)), FAULTS["kill-task"].make(parse("kill-task@now"), context)
    at(fault, spark, 1)
    spark.at = Reached("task", 0, 2)
    at(fault, spark, 2)
    assert not report_of(fault).landed  # the line is older than the fault
    spark.words = (LOST_TASK, LOST_TASK.replace("TID 31", "TID 35"))
    at(fault, spark, 3)
    assert report_of(fault).landed
    spark.newest = progress(4, 400)
    for second in range(4, 600):
        at(fault, spark, second * 1000)

    assert not report_of(fault).healed


@pytest.mark.parametrize(
    ("manifest", "why"),
    [(MANIFEST, "has no tasks of Spark"), (replace(ON_CLUSTER, shipped=False), "does not offer it")],
)
def test_only_a_job_that_offers_it_can_lose_a_task(manifest, why):
    fault = FAULTS["kill-task"].make(parse("kill-task@now"), Context(SPEC_ON_CLUSTER, manifest, CLAIM))

    assert why in " ".join(fault.needs)


@pytest.mark.parametrize("name", ["kill-executor", "pause-executor"])
def test_executors_of_a_local_master_are_no_processes(name):
    fault = create(f"{name}@now", ON_CLUSTER)

    assert "local-cluster" in fault.needs[0]


def test_other_engines_have_executors_where_their_manifest_says_so():
    says_nothing = create("kill-executor@now", MANIFEST)
    says_so = create("kill-executor@now", replace(MANIFEST, executors=True))

    assert "no executors: its manifest lacks executors = true" in says_nothing.needs[0]
    assert says_so.needs == ()


@pytest.mark.parametrize(
    ("command", "which"),
    [
        (
            ("java", "-cp", "x", "org.apache.flink.runtime.taskexecutor.TaskManagerRunner", "--configDir", "c"),
            is_executor,
        ),
        (("java", "-cp", "x", "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint"), is_driver_jvm),
        (("python", "-m", "pyflink.fn_execution.beam.beam_boot", "--id=1-1"), is_python_worker),
    ],
)
def test_flinks_processes_are_told_apart(command, which):
    kinds = (is_executor, is_driver_jvm, is_python_worker)

    assert [kind for kind in kinds if kind(Member(40, 11, command))] == [which]


@pytest.mark.parametrize(("name", "pid", "left"), [("kill-driver", 10, JVM), ("kill-jvm", 11, PYTHON)])
def test_half_a_driver_is_killed_and_the_other_half_gets_its_time(name, pid, left):
    spark, fault = engine(), create(f"{name}(for=5s)@now")
    at(fault, spark, 1)
    assert spark.story == [f"SIGKILL [{pid}]"]
    spark.there, spark.running = (left,), left is PYTHON
    at(fault, spark, 10)
    assert report_of(fault).landed
    at(fault, spark, 4_000)
    assert fault.busy()
    assert "restart" not in spark.story

    at(fault, spark, 5_011)
    assert spark.story[-1] == "restart"
    spark.running, spark.newest = True, progress(4, 400)
    at(fault, spark, 5_100)

    assert f"{left.pid} still ran after 5 s and was killed" in report_of(fault).proof
    assert report_of(fault).healed


def test_half_a_driver_that_takes_the_other_along_is_back_at_once():
    spark, fault = engine(code=-9), create("kill-driver@now")
    at(fault, spark, 1)
    spark.there, spark.running = (), False
    at(fault, spark, 2)
    at(fault, spark, 3)
    assert spark.story[-1] == "restart"
    spark.newest = progress(4, 400)
    at(fault, spark, 4)

    assert "no other process survived (exit code -9)" in report_of(fault).proof


def test_a_crash_loop_kills_what_comes_back_and_what_takes_too_long():
    spark, fault = engine(), create("crash-loop(times=3, after=4s)@now")
    at(fault, spark, 1_000)
    assert spark.story.count("kill") == 1
    at(fault, spark, 1_500)
    assert spark.story.count("kill") == 1
    spark.newest = progress(4, 400)
    at(fault, spark, 2_000)
    assert spark.story.count("kill") == 2
    at(fault, spark, 5_900)
    assert spark.story.count("kill") == 2
    assert not report_of(fault).landed
    at(fault, spark, 6_000)
    assert spark.story.count("kill") == 3
    assert report_of(fault).landed

    spark.newest = progress(5, 500)
    at(fault, spark, 7_000)
    at(fault, spark, 7_050)

    report = report_of(fault)
    assert (spark.story.count("restart"), report.healed) == (3, True)
    assert "killed, and nothing is left" in report.proof  # as the engine reports it
    assert "during its work; 1.0 s after its restart, going on; 4.0 s after its restart" in report.proof
    assert "from 400 to 500" in report.proof


def test_a_crash_loop_has_the_time_for_all_of_its_starts():
    spark, fault = engine(), create("crash-loop(times=3, after=60s)@now")
    for now_ms in range(1_000, 130_000, 1_000):
        at(fault, spark, now_ms)

    assert spark.story.count("kill") == 3
    assert report_of(fault).landed


def test_a_kill_in_recovery_needs_both_kills_at_the_same_batch():
    spark, fault = engine(), create("kill-in-recovery@c2:batch=4")
    at(fault, spark, 1)
    spark.plans[4], spark.at = b"plan", Reached("c2", 4, 1)
    at(fault, spark, 2)
    assert spark.story == ["arm c2 4", "kill", "disarm", "restart", "arm c2 4"]
    assert not report_of(fault).landed

    spark.at = Reached("c2", 4, 1)
    at(fault, spark, 3)
    at(fault, spark, 4)
    assert spark.story[5:] == ["kill", "disarm", "restart"]
    assert report_of(fault).landed
    spark.commits.add(4)
    at(fault, spark, 5)

    report = report_of(fault)
    assert (report.healed, report.replayed, report.batch, report.at_ms) == (True, True, 4, 2)
    assert report.proof.count("was at c2, planned and not committed") == 2


def test_a_recovery_that_was_too_quick_did_not_land():
    spark, fault = engine(), create("kill-in-recovery@c3:batch=4")
    spark.plans[4], spark.at = b"plan", Reached("c3", 4, 1)
    at(fault, spark, 1)
    spark.commits.add(4)
    at(fault, spark, 2)

    assert not report_of(fault).landed
    assert "before it could be killed again" in report_of(fault).proof
    assert fault.over()


def frozen_zombie() -> tuple[WithMembers, Fault]:
    """Frozen in batch 4, and a second driver on its way."""
    spark, fault = engine(), create("zombie@c1:batch=4")
    at(fault, spark, 0)
    spark.plans[4], spark.at = b"plan", Reached("c1", 4, 1)
    at(fault, spark, 1)
    assert spark.story[-1] == "SIGSTOP [10, 11]"
    spark.there = (replace(PYTHON, stopped=True), JVM)
    at(fault, spark, 2)
    assert "set aside" not in spark.story
    spark.stop_all(stopped=True)
    at(fault, spark, 3)
    assert spark.story[-3:] == ["set aside", "disarm", "restart"]
    return spark, fault


def test_a_zombie_is_thawed_when_its_windows_are_over_and_two_more_batches_are_done():
    spark, fault = frozen_zombie()
    spark.commits, spark.newest = {4, 5, 6, 7}, progress(7, 700)
    at(fault, spark, 9_000)
    assert spark.kept.story == []
    at(fault, spark, 10_100)
    spark.newest = progress(8, 800)
    at(fault, spark, 10_200)
    assert spark.kept.story == []
    spark.newest = progress(9, 900)
    at(fault, spark, 10_300)
    assert spark.kept.story == ["SIGCONT [10, 11]"]
    at(fault, spark, 10_400)
    assert not report_of(fault).landed

    spark.kept.code = 1
    at(fault, spark, 11_000)
    at(fault, spark, 11_050)
    at(fault, spark, 11_100)

    report = report_of(fault)
    assert (report.landed, report.healed, report.batch, report.replayed) == (True, True, 4, True)
    assert "committed batch 4 and went on to batch 9" in report.proof
    assert "exit code 1: The query failed: [CONCURRENT_STREAM_LOG_UPDATE]" in report.proof


def test_a_zombie_that_never_ended_has_not_landed_and_is_ended():
    spark, fault = frozen_zombie()
    spark.commits, spark.newest = {4}, progress(5, TOTAL)
    at(fault, spark, 10_100)
    at(fault, spark, 10_200)
    assert spark.kept.story == ["SIGCONT [10, 11]"]
    at(fault, spark, 3_600_000)

    assert not report_of(fault).landed
    assert spark.kept.story == ["SIGCONT [10, 11]", "stop"]


def test_a_zombie_that_ended_for_another_reason_has_proved_nothing():
    spark, fault = frozen_zombie()
    spark.kept.words = ("at java.util.concurrent.ThreadPoolExecutor", "redis: connection closed")
    spark.commits, spark.newest = {4}, progress(5, TOTAL)
    at(fault, spark, 10_100)
    spark.kept.code = 1
    at(fault, spark, 10_200)
    at(fault, spark, 10_300)
    at(fault, spark, 10_400)

    assert fault.over()
    assert not report_of(fault).landed
    assert "connection closed, so it is not known whether it had written" in report_of(fault).proof


FRAMES = ("\tat java.util.Frame.of(Frame.java)",) * 500


@pytest.mark.parametrize(
    ("words", "landed", "shown"),
    [
        ((*LOST, *FRAMES), True, "exit code 1: The query failed: [CONCURRENT_STREAM_LOG_UPDATE]"),
        (("java.io.IOException: cut", *FRAMES), False, "exit code 1: java.io.IOException: cut, so it is not known"),
    ],
)
def test_of_a_zombie_the_reason_counts_however_long_its_stack_trace_is(words, landed, shown):
    spark, fault = frozen_zombie()
    spark.kept.words = words
    spark.commits, spark.newest = {4}, progress(5, TOTAL)
    at(fault, spark, 10_100)
    spark.kept.code = 1
    at(fault, spark, 10_200)

    assert report_of(fault).landed is landed
    at(fault, spark, 10_300)
    at(fault, spark, 10_400)
    assert shown in report_of(fault).proof


@pytest.mark.parametrize("point", ["c3", "c4"])
def test_a_zombie_needs_something_left_to_write(point):
    assert "nothing left to write late" in create(f"zombie@{point}").needs[0]


def test_two_drivers_run_until_one_has_lost_and_one_is_left():
    spark, fault = engine(), create("two-drivers(for=4s)@now")
    at(fault, spark, 1)
    at(fault, spark, 100)
    assert not report_of(fault).landed
    spark.running = False  # the first lost
    at(fault, spark, 200)
    assert report_of(fault).landed
    assert fault.busy()
    at(fault, spark, 4_300)
    assert spark.kept.story == ["stop"]
    assert spark.story == ["second", "disarm", "restart"]
    spark.newest = progress(5, 500)
    at(fault, spark, 4_400)

    report = report_of(fault)
    assert report.healed
    assert "the first ended with exit code 0: The query failed: [CONCURRENT_STREAM_LOG_UPDATE]" in report.proof
    assert "the second was stopped cleanly; one driver alone, it went on from 300 to 500" in report.proof


def test_a_second_driver_that_tells_of_its_own_batch_has_landed():
    spark, fault = engine(), create("two-drivers(for=4s)@now")
    at(fault, spark, 1)
    spark.kept.newest = progress(9, 900)
    at(fault, spark, 2)

    assert "the second reported its batch 9 while the first ran" in report_of(fault).proof


def test_a_second_driver_that_only_came_to_grief_has_not_landed():
    spark, fault = engine(kept=Kept(code=2, words=("no such file",))), create("two-drivers@now")
    at(fault, spark, 1)
    at(fault, spark, 2)

    assert not report_of(fault).landed


@pytest.mark.parametrize("kind", [kind.name for kind in KINDS if "resumes" in kind.needs])
def test_who_does_not_resume_is_spared(kind):
    moment = "c2" if FAULTS[kind].moments == ("point",) else "now"

    assert "does not resume" in create(f"{kind}@{moment}", replace(MANIFEST, resumes=False)).needs[0]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("pause(for=long)@now", "for = 'long' is not a time"),
        ("crash-loop(times=0)@now", "times = '0' is not a whole number from 1 to 999,999,999"),
        ("zombie@t>=5s", "zombie can't wait for t>=5s; it can wait for point"),
    ],
)
def test_options_and_moments_are_looked_at_when_they_are_read(text, named):
    with pytest.raises(UsageError) as wrong:
        parse(text)

    assert named in str(wrong.value)
