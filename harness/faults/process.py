"""The process family: all faults of an engine's processes except the plain kill.

`stop` is the baseline. The others freeze processes, kill one of them, kill repeatedly, or start a second driver beside
the first. Proofs come from the operating system (gone, state T), from the engine's durable files, and from the last log
lines of a driver that lost.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.faults.base import Context, Fault, Kind
from harness.faults.idle import Idle
from harness.faults.members import everything, is_driver, is_driver_jvm, is_executor, is_python_worker
from harness.faults.second_driver import TwoDrivers, Zombie
from harness.faults.signals import CrashLoop, KillHalf, KillHelper, KillInRecovery, Pause, Stop
from harness.faults.strike import Strike, missing_for, struck, unresumed
from harness.model import FaultSpec
from harness.util.durations import seconds

PAUSE = {"for": "10s"}
WITHOUT = {"for": "10s"}
LOOP = {"times": "5", "after": "10s"}
TOGETHER = {"for": "10s"}


def _hold_ms(spec: FaultSpec, usual: Mapping[str, str]) -> float:
    return seconds(spec.options.get("for", usual["for"]), "for") * 1000


def stop(spec: FaultSpec, context: Context) -> Fault:
    return _resuming(spec, Stop(context), context)


def pause(spec: FaultSpec, context: Context) -> Fault:
    return struck(spec, Pause(context, everything, "processes of the engine", _hold_ms(spec, PAUSE)), context)


def pause_jvm(spec: FaultSpec, context: Context) -> Fault:
    return struck(spec, Pause(context, is_driver_jvm, "JVM of the driver", _hold_ms(spec, PAUSE)), context)


def pause_executor(spec: FaultSpec, context: Context) -> Fault:
    strike = Pause(context, is_executor, "executor", _hold_ms(spec, PAUSE))
    return _with_executors(spec, strike, context)


def kill_executor(spec: FaultSpec, context: Context) -> Fault:
    return _with_executors(spec, KillHelper(context, is_executor, "executor"), context)


def kill_python(spec: FaultSpec, context: Context) -> Fault:
    return struck(spec, KillHelper(context, is_python_worker, "Python worker"), context)


def kill_jvm(spec: FaultSpec, context: Context) -> Fault:
    return _resuming(spec, KillHalf(context, is_driver_jvm, "JVM of the driver", _hold_ms(spec, WITHOUT)), context)


def kill_driver(spec: FaultSpec, context: Context) -> Fault:
    return _resuming(spec, KillHalf(context, is_driver, "driver's first process", _hold_ms(spec, WITHOUT)), context)


def crash_loop(spec: FaultSpec, context: Context) -> Fault:
    options = {**LOOP, **spec.options}
    times = int(options["times"])
    return _resuming(spec, CrashLoop(context, times, seconds(options["after"], "after") * 1000), context)


def kill_in_recovery(spec: FaultSpec, context: Context) -> Fault:
    missing = (*unresumed(context.manifest), *missing_for(spec, context))
    if spec.when.point == "c4":
        missing = (*missing, "nothing is replayed after c4, so there is no replay to kill it in")
    return Idle(spec, missing) if missing else KillInRecovery(spec)


def zombie(spec: FaultSpec, context: Context) -> Fault:
    strike = Zombie(context)
    if spec.when.point in ("c3", "c4"):
        strike.needs = (f"at {spec.when.point} the driver has nothing left to write late: use c1 or c2",)
    return _resuming(spec, strike, context)


def two_drivers(spec: FaultSpec, context: Context) -> Fault:
    return _resuming(spec, TwoDrivers(context, _hold_ms(spec, TOGETHER)), context)


def _resuming(spec: FaultSpec, strike: Strike, context: Context) -> Fault:
    strike.needs = (*unresumed(context.manifest), *strike.needs)
    return struck(spec, strike, context)


def _with_executors(spec: FaultSpec, strike: Strike, context: Context) -> Fault:
    engine, master = context.manifest, context.spec.master
    if engine.on_spark and not master.startswith("local-cluster["):
        strike.needs = (
            f"executors are separate processes only with --master local-cluster[2,1,1024], not with {master}",
        )
    elif not engine.on_spark and not engine.executors:
        strike.needs = (f"{engine.id} has no executors: its manifest lacks executors = true",)
    return struck(spec, strike, context)


ANY_MOMENT = ("point", "batch", "offset", "time", "now")

KINDS = (
    Kind(
        "stop",
        "process",
        "SIGTERM to the driver, which stops cleanly, then a restart",
        "goes on where it was; no count changes: the baseline of the other process faults",
        stop,
        needs="an engine that resumes",
    ),
    Kind(
        "pause",
        "process",
        "SIGSTOP to every process of the engine for a while, then SIGCONT",
        "makes no progress meanwhile, then catches up; no count changes",
        pause,
        options=PAUSE,
        moments=ANY_MOMENT,
    ),
    Kind(
        "pause-jvm",
        "process",
        "SIGSTOP to the JVM of the driver for a while, while its Python process runs on",
        "makes no progress meanwhile, then catches up; no count changes",
        pause_jvm,
        needs="a driver with a JVM",
        options=PAUSE,
        moments=ANY_MOMENT,
    ),
    Kind(
        "pause-executor",
        "process",
        "SIGSTOP to all executors (of Flink, TaskManagers) for a while: the driver waits for tasks that do not answer",
        "waits, or runs the tasks elsewhere; no count changes",
        pause_executor,
        needs="executors as separate processes: Spark with --master local-cluster[...], flink-standalone",
        options=PAUSE,
    ),
    Kind(
        "kill-executor",
        "process",
        "SIGKILL to one executor (of Flink, a TaskManager)",
        "gets a new executor and runs its tasks again; no count changes",
        kill_executor,
        needs="executors as separate processes: Spark with --master local-cluster[...], flink-standalone",
    ),
    Kind(
        "kill-python",
        "process",
        "SIGKILL to one of the engine's Python workers",
        "runs the task again, or stops loudly if a task may fail only once (local[*]); no count changes",
        kill_python,
        needs="a job with Python workers",
        moments=ANY_MOMENT,
    ),
    Kind(
        "kill-jvm",
        "process",
        "SIGKILL to the JVM of the driver alone; a restart when its Python process has ended too, or had time to",
        "its Python process ends, nothing is written twice; no count changes",
        kill_jvm,
        needs="a driver with a JVM, an engine that resumes",
        options=WITHOUT,
        moments=ANY_MOMENT,
    ),
    Kind(
        "kill-driver",
        "process",
        "SIGKILL to the driver's first process alone; a restart when the others have ended too, or had time to",
        "its JVM ends with it and releases the checkpoint; no count changes",
        kill_driver,
        needs="an engine that resumes",
        options=WITHOUT,
        moments=ANY_MOMENT,
    ),
    Kind(
        "crash-loop",
        "process",
        "SIGKILL to all processes several times, each as soon as the engine goes on or after a while",
        "resumes after each kill; no count changes",
        crash_loop,
        needs="an engine that resumes",
        options=LOOP,
    ),
    Kind(
        "kill-in-recovery",
        "process",
        "SIGKILL to all processes at a crash point, and again at the same point when the batch is replayed",
        "replays the batch a second time with the same plan; no count changes",
        kill_in_recovery,
        needs="an engine that resumes, crash points in its sink (c1 to c3)",
        moments=("point",),
    ),
    Kind(
        "zombie",
        "process",
        "the driver is frozen in its write at c1 or c2, a second one overtakes it, and the first is thawed",
        "the late writes of the first are refused or change nothing, and it stops loudly; no count changes",
        zombie,
        needs="an engine that resumes, crash point c1 or c2 in its sink",
        moments=("point",),
    ),
    Kind(
        "two-drivers",
        "process",
        "a second driver is started on the checkpoint of the first, which keeps running",
        "one of the two stops loudly before both have written the same batch; no count changes",
        two_drivers,
        needs="an engine that resumes",
        options=TOGETHER,
    ),
)
