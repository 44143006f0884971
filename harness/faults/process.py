"""The process family: all faults of an engine's processes except the plain kill.

`stop` is the baseline. The others freeze processes, kill one of them, kill repeatedly, or start a second driver beside
the first. Proofs come from the operating system (gone, state T), from the engine's durable files, and from the last log
lines of a driver that lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from harness.engines.base import Member
from harness.faults.base import PROGRESS, Context, Fault, Kind
from harness.faults.kill_task import KillTask, of_our_job
from harness.faults.members import everything, is_driver, is_driver_jvm, is_executor, is_python_worker
from harness.faults.second_driver import TwoDrivers, Zombie
from harness.faults.signals import CrashLoop, KillHalf, KillHelper, KillInRecovery, Pause, Stop
from harness.faults.strike import Idle, Lacks, length_ms, missing_for, resuming, struck_by, unresumed
from harness.model import FaultSpec, workers_of_master
from harness.util.durations import seconds


def kill_in_recovery(spec: FaultSpec, context: Context) -> Fault:
    missing = (*unresumed(context.manifest), *missing_for(spec, context))
    if spec.when.point == "c4":
        missing = (*missing, "nothing is replayed after c4, so there is no replay to kill it in")
    return Idle(spec, missing) if missing else KillInRecovery(spec)


def _writing(spec: FaultSpec, _: Context) -> Iterator[str]:
    if spec.when.point in ("c3", "c4"):
        yield f"at {spec.when.point} the driver has nothing left to write late: use c1 or c2"


def _executors(_: FaultSpec, context: Context) -> Iterator[str]:
    engine, master = context.manifest, context.spec.master
    if engine.on_spark and not (master.startswith("local-cluster[") or workers_of_master(master)):
        yield (
            f"executors are separate processes of the run only with --cluster 2 or --master local-cluster[2,1,1024], "
            f"not with {master}"
        )
    elif not engine.on_spark and not engine.executors:
        yield f"{engine.id} has no executors: its manifest lacks executors = true"


def _one_at_a_time(_: FaultSpec, context: Context) -> Iterator[str]:
    if workers_of_master(context.spec.master):
        yield "the first driver holds all cores of the cluster, so a second one would get none"


def _pause(which: Callable[[Member], bool], what: str, *lacks: Lacks) -> Callable[[FaultSpec, Context], Fault]:
    return struck_by(lambda spec, context: Pause(context, which, what, length_ms(spec)), *lacks)


def _kill_helper(which: Callable[[Member], bool], what: str, *lacks: Lacks) -> Callable[[FaultSpec, Context], Fault]:
    return struck_by(lambda _, context: KillHelper(context, which, what), *lacks)


def _kill_half(which: Callable[[Member], bool], what: str) -> Callable[[FaultSpec, Context], Fault]:
    return struck_by(lambda spec, context: KillHalf(context, which, what, length_ms(spec)), resuming)


def _crash_loop(spec: FaultSpec, context: Context) -> CrashLoop:
    return CrashLoop(context, int(spec.options["times"]), seconds(spec.options["after"], "after") * 1000)


KINDS = (
    Kind(
        "stop",
        "SIGTERM to the driver, which stops cleanly, then a restart",
        "goes on where it was; no count changes: the baseline of the other process faults",
        struck_by(lambda _, context: Stop(context), resuming),
        needs="an engine that resumes",
        moments=PROGRESS,
    ),
    Kind(
        "pause",
        "SIGSTOP to every process of the engine for a while, then SIGCONT",
        "makes no progress meanwhile, then catches up; no count changes",
        _pause(everything, "processes of the engine"),
        options={"for": "10s"},
    ),
    Kind(
        "pause-jvm",
        "SIGSTOP to the JVM of the driver for a while, while its Python process runs on",
        "makes no progress meanwhile, then catches up; no count changes",
        _pause(is_driver_jvm, "JVM of the driver"),
        needs="a driver with a JVM",
        options={"for": "10s"},
    ),
    Kind(
        "pause-executor",
        "SIGSTOP to all executors (of Flink, TaskManagers) for a while: the driver waits for tasks that do not answer",
        "waits, or runs the tasks elsewhere; no count changes",
        _pause(is_executor, "executor", _executors),
        needs="executors as separate processes: Spark with --cluster or --master local-cluster[...], flink-standalone",
        options={"for": "10s"},
        moments=PROGRESS,
    ),
    Kind(
        "kill-executor",
        "SIGKILL to one executor (of Flink, a TaskManager)",
        "gets a new executor and runs its tasks again; no count changes",
        _kill_helper(is_executor, "executor", _executors),
        needs="executors as separate processes: Spark with --cluster or --master local-cluster[...], flink-standalone",
        moments=PROGRESS,
    ),
    Kind(
        "kill-task",
        "one running task of Spark is killed by its driver, while its executor lives on",
        "runs the task again, on this or another executor; no count changes",
        struck_by(lambda _, context: KillTask(context), of_our_job, _executors),
        needs="a shipped job of Spark with --cluster or --master local-cluster[...]",
        moments=PROGRESS,
    ),
    Kind(
        "kill-python",
        "SIGKILL to one of the engine's Python workers",
        "runs the task again, or stops loudly if a task may fail only once (local[*]); no count changes",
        _kill_helper(is_python_worker, "Python worker"),
        needs="a job with Python workers",
    ),
    Kind(
        "kill-jvm",
        "SIGKILL to the JVM of the driver alone; a restart when its Python process has ended too, or had time to",
        "its Python process ends, nothing is written twice; no count changes",
        _kill_half(is_driver_jvm, "JVM of the driver"),
        needs="a driver with a JVM, an engine that resumes",
        options={"for": "10s"},
    ),
    Kind(
        "kill-driver",
        "SIGKILL to the driver's first process alone; a restart when the others have ended too, or had time to",
        "its JVM ends with it and releases the checkpoint; no count changes",
        _kill_half(is_driver, "driver's first process"),
        needs="an engine that resumes",
        options={"for": "10s"},
    ),
    Kind(
        "crash-loop",
        "SIGKILL to all processes several times, each as soon as the engine goes on or after a while",
        "resumes after each kill; no count changes",
        struck_by(_crash_loop, resuming),
        needs="an engine that resumes",
        options={"times": "5", "after": "10s"},
        moments=PROGRESS,
    ),
    Kind(
        "kill-in-recovery",
        "SIGKILL to all processes at a crash point, and again at the same point when the batch is replayed",
        "replays the batch a second time with the same plan; no count changes",
        kill_in_recovery,
        needs="an engine that resumes, crash points in its sink (c1 to c3)",
        moments=("point",),
    ),
    Kind(
        "zombie",
        "the driver is frozen in its write at c1 or c2, a second one overtakes it, and the first is thawed",
        "the late writes of the first are refused or change nothing, and it stops loudly; no count changes",
        struck_by(lambda _, context: Zombie(context), resuming, _writing, _one_at_a_time),
        needs="an engine that resumes, crash point c1 or c2 in its sink",
        moments=("point",),
    ),
    Kind(
        "two-drivers",
        "a second driver is started on the checkpoint of the first, which keeps running",
        "one of the two stops loudly before both have written the same batch; no count changes",
        struck_by(lambda spec, context: TwoDrivers(context, length_ms(spec)), resuming, _one_at_a_time),
        needs="an engine that resumes",
        options={"for": "10s"},
        moments=PROGRESS,
    ),
)
