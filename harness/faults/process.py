"""The process family: everything but the plain kill that can happen to an engine's own processes.

`stop` is the baseline. The others freeze processes, take one of them away, kill again and again, or set a second driver
beside the first. What each has to show is read from the operating system (gone, state T), from the engine's durable
files, and from the last words of a driver that lost.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from pathlib import Path

from harness.engines.base import Engine, Ghost, Member
from harness.faults.base import Context, Fault, Kind
from harness.faults.idle import Idle
from harness.faults.kill import KillAtPoint
from harness.faults.moment import Moment, done
from harness.faults.strike import CannotStrikeError, Strike, missing_for, struck
from harness.faults.when import seconds
from harness.model import FaultSpec

# How Spark says that its checkpoint is not its own any more, and how others may.
LOST_WORDS = ("CONCURRENT", "Concurrent", "concurrent")
FURTHER_BATCHES = 2
PAUSE = {"for": "10s"}
WITHOUT = {"for": "10s"}
LOOP = {"times": "5", "after": "10s"}
TOGETHER = {"for": "10s"}
SLOW_MS = 60_000.0  # to end or to be killed, on a machine that has much else to do


def everything(_: Member) -> bool:
    return True


def is_driver(member: Member) -> bool:
    """The process that was started; of Spark the Python that holds the query."""
    return member.leads


def is_executor(member: Member) -> bool:
    return any("CoarseGrainedExecutorBackend" in word for word in member.command)


def is_driver_jvm(member: Member) -> bool:
    return bool(member.command) and Path(member.command[0]).name == "java" and not is_executor(member)


def is_python_worker(member: Member) -> bool:
    return any(word.startswith(("pyspark.daemon", "pyspark.worker")) for word in member.command)


def pids_of(members: tuple[Member, ...]) -> list[int]:
    return [member.pid for member in members]


def chosen(engine: Engine | Ghost, which: Callable[[Member], bool]) -> tuple[Member, ...]:
    return tuple(member for member in engine.members() if which(member))


class GoingOn:
    """Sees that an engine which was struck does something again."""

    def __init__(self, manifest_progress: bool) -> None:
        self._tells = manifest_progress
        self._before = 0

    def begin(self, engine: Engine) -> None:
        newest = engine.progress()
        self._before = sum(newest.offsets.values()) if newest else 0

    def seen(self, now: Moment) -> str:
        if not now.engine.alive():
            return ""
        if not self._tells:
            return "it runs; it tells no progress"
        if done(now) > self._before:
            return f"it went on from {self._before:,} to {done(now):,} records"
        return f"it runs, and all {self._before:,} records had been done" if self._before >= now.total > 0 else ""


class ProcessStrike(Strike):
    """What all of the family need: how long a start may take, and to see the engine go on."""

    def __init__(self, context: Context) -> None:
        ready_ms = context.manifest.ready_s * 1000
        self.land_within_ms = SLOW_MS
        self.heal_within_ms = ready_ms + SLOW_MS
        self._ready_ms = ready_ms
        self._going_on = GoingOn(context.manifest.progress)

    def _restart(self, engine: Engine) -> None:
        """Whatever state it is in, afterwards exactly one of it runs, and is watched."""
        if engine.alive():
            engine.kill()
        self._going_on.begin(engine)
        engine.disarm()
        engine.restart()


class Stop(ProcessStrike):
    """SIGTERM to the driver alone: it has to end in order, and resume as if nothing had been."""

    stops_engine = True

    def inject(self, now: Moment) -> str:
        pids = pids_of(chosen(now.engine, is_driver))
        now.engine.signal(signal.SIGTERM, pids)
        return f"SIGTERM to process {_list(pids)}"

    def landed(self, now: Moment) -> str:
        if now.engine.alive():
            return ""
        code = now.engine.exit_code()
        return f"it ended with exit code {code}, {'in order' if code == 0 else 'and not in order'}"

    def heal(self, now: Moment) -> None:
        self._restart(now.engine)

    def healed(self, now: Moment) -> str:
        return self._going_on.seen(now)


class Pause(ProcessStrike):
    """SIGSTOP to all members or to some: nothing is broken, it only does not happen."""

    def __init__(self, context: Context, which: Callable[[Member], bool], what: str, hold_ms: float) -> None:
        super().__init__(context)
        self._which, self._what, self.hold_ms = which, what, hold_ms
        self._pids: list[int] = []

    def inject(self, now: Moment) -> str:
        self._pids = pids_of(_some(now.engine, self._which, self._what))
        now.engine.signal(signal.SIGSTOP, self._pids)
        return f"SIGSTOP to {self._what} ({_list(self._pids)})"

    def landed(self, now: Moment) -> str:
        there = chosen(now.engine, self._which)
        if not there or not all(member.stopped for member in there):
            return ""
        return f"state T: {_list(pids_of(there))}"

    def heal(self, now: Moment) -> None:
        now.engine.signal(signal.SIGCONT, pids_of(self._frozen(now)))

    def healed(self, now: Moment) -> str:
        return "" if self._frozen(now) else "SIGCONT, and none of it is in state T any more"

    def _frozen(self, now: Moment) -> tuple[Member, ...]:
        return chosen(now.engine, lambda member: member.stopped)


class KillHelper(ProcessStrike):
    """SIGKILL to one process whose work others are to take over: an executor, a Python worker."""

    def __init__(self, context: Context, which: Callable[[Member], bool], what: str) -> None:
        super().__init__(context)
        self._which, self._what = which, what
        self._known: list[int] = []
        self._pid = 0

    def inject(self, now: Moment) -> str:
        there = _some(now.engine, self._which, self._what)
        self._known = pids_of(there)
        # Of Spark's Python workers the daemon is the parent of all others.
        self._pid = next((m.pid for m in reversed(there) if m.parent in self._known), self._known[-1])
        self._going_on.begin(now.engine)
        now.engine.signal(signal.SIGKILL, [self._pid])
        return f"SIGKILL to {self._what} {self._pid} (there: {_list(self._known)})"

    def landed(self, now: Moment) -> str:
        return "" if self._pid in pids_of(now.engine.members()) else f"process {self._pid} is gone"

    def heal(self, now: Moment) -> None:
        """Nothing: it is the engine that has to."""

    def healed(self, now: Moment) -> str:
        new = [pid for pid in pids_of(chosen(now.engine, self._which)) if pid not in self._known]
        went_on = self._going_on.seen(now)
        if not went_on or (self._which is is_executor and not new):
            return ""
        return f"{self._what} {_list(new)} came instead; {went_on}" if new else went_on


class KillHalf(ProcessStrike):
    """SIGKILL to the driver's Python or to its JVM alone. What becomes of the other half is told; then a restart."""

    stops_engine = True

    def __init__(self, context: Context, which: Callable[[Member], bool], what: str, hold_ms: float) -> None:
        super().__init__(context)
        self._which, self._what, self.hold_ms = which, what, hold_ms
        self._pids: list[int] = []
        self._rest = ""

    def inject(self, now: Moment) -> str:
        self._pids = pids_of(_some(now.engine, self._which, self._what))
        now.engine.signal(signal.SIGKILL, self._pids)
        return f"SIGKILL to {self._what} ({_list(self._pids)}) alone"

    def landed(self, now: Moment) -> str:
        left = set(pids_of(now.engine.members())) & set(self._pids)
        return "" if left else f"process {_list(self._pids)} is gone"

    def holds(self, now: Moment, landed_ms: int) -> bool:
        return super().holds(now, landed_ms) and bool(now.engine.members())

    def heal(self, now: Moment) -> None:
        left = now.engine.members()
        if left:
            names = ", ".join(f"{Path(m.command[0]).name if m.command else '?'} {m.pid}" for m in left)
            self._rest = f"{names} still ran after {self.hold_ms / 1000:g} s and was killed"
        else:
            self._rest = f"nothing of it lived on (exit code {now.engine.exit_code()})"
        self._restart(now.engine)

    def healed(self, now: Moment) -> str:
        went_on = self._going_on.seen(now)
        return f"{self._rest}; started again, {went_on}" if went_on else ""


class CrashLoop(ProcessStrike):
    """Killed, and again as soon as it goes on or has had `after` to do so, until it was killed so often."""

    def __init__(self, context: Context, times: int, after_ms: float) -> None:
        super().__init__(context)
        self._times, self._after_ms = times, after_ms
        self.land_within_ms = times * (after_ms + SLOW_MS)
        self._started_ms = 0
        self._lives: list[str] = []

    def inject(self, now: Moment) -> str:
        self._lives.append("in the middle of its work")
        return self._kill(now)

    def landed(self, now: Moment) -> str:
        age_ms = now.now_ms - self._started_ms
        went_on = self._going_on.seen(now)
        if went_on or age_ms >= self._after_ms:
            self._lives.append(f"{age_ms / 1000:.1f} s old{', going on' if went_on else ''}")
            self._kill(now)
        return f"killed {self._times} times, each time nothing was left: {'; '.join(self._lives)}" if self._all else ""

    def heal(self, now: Moment) -> None:
        """It was started again after each kill."""

    def healed(self, now: Moment) -> str:
        went_on = self._going_on.seen(now)
        return f"after that {went_on}" if went_on else ""

    @property
    def _all(self) -> bool:
        return len(self._lives) == self._times

    def _kill(self, now: Moment) -> str:
        seen = now.engine.kill()
        self._restart(now.engine)
        self._started_ms = now.now_ms
        return seen


class KillInRecovery(KillAtPoint):
    """Killed at a point, and again at the same point of the same batch when it is replayed."""

    _again = False

    def _bring_back(self, engine: Engine) -> None:
        super()._bring_back(engine)
        self._landed = self._landed and self._again

    def _restart(self, engine: Engine) -> None:
        super()._restart(engine)
        if not self._again and self._batch is not None:
            engine.arm(self._spec.when.point, self._batch)

    def _watch(self, now: Moment) -> None:
        reached = None if self._again else now.engine.reached()
        if self._again:
            super()._watch(now)
        elif reached and reached.batch == self._batch:
            self._again = True
            self._proof.append("and while it replayed that batch")
            self._kill(now.engine)
        elif reached or (self._batch is not None and now.engine.committed(self._batch)):
            now.engine.disarm()
            self._proof.append(f"batch {self._batch} was done before it could be killed again")
            self._over()


class Zombie(ProcessStrike):
    """A driver that was taken for dead in the middle of its write goes on when another one has long done its work.

    It is thawed only when the batch's windows are over and the second driver has committed what was planned after
    that. Earlier, totals that it writes late would be put right by the next batch, and nothing would show.
    """

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._window_ms = context.spec.window_ms
        # To freeze, to start a second one, to let the windows pass, to plan and do two batches, and to end.
        self.land_within_ms = 2 * self._ready_ms + self._window_ms + 2 * SLOW_MS
        self._pids: list[int] = []
        self._ghost: Ghost | None = None
        self._batch = -1
        self._plan: bytes | None = None
        self._replayed: bool | None = None
        self._frozen_ms = 0
        self._since: int | None = None
        self._thawed_at = ""
        self._end = ""

    def inject(self, now: Moment) -> str:
        reached = now.engine.reached()
        assert reached is not None  # it waits for a point
        self._batch, self._frozen_ms = reached.batch, now.now_ms
        self._pids = pids_of(now.engine.members())
        now.engine.signal(signal.SIGSTOP, self._pids)
        return f"SIGSTOP to {_list(self._pids)} in its write of batch {reached.batch} at {reached.point}"

    def landed(self, now: Moment) -> str:
        if self._ghost is None:
            self._set_aside(now.engine)
        elif not self._thawed_at:
            self._thaw_when_overtaken(now, self._ghost)
        elif not self._ghost.alive():
            self._end = f"it ended with exit code {self._ghost.exit_code()}: {_last_words(self._ghost)}"
            return f"state T while a second driver {self._thawed_at}; SIGCONT, and {self._end}"
        return ""

    def heal(self, now: Moment) -> None:
        """What never came so far goes on, too."""
        if self._ghost:
            self._ghost.stop()
        else:
            now.engine.signal(signal.SIGCONT, self._pids)
        self._going_on.begin(now.engine)

    def healed(self, now: Moment) -> str:
        if self._ghost and self._ghost.members():
            return ""
        # What happens after a ghost is no matter of progress: there may be nothing left to do.
        return "nothing is left of the first driver, and the second runs" if now.engine.alive() else ""

    def batch(self) -> int | None:
        return self._batch if self._batch >= 0 else None

    def replayed(self) -> bool | None:
        return self._replayed

    def _set_aside(self, engine: Engine) -> None:
        """Only when all of it stands still: one thread that still ran would go on writing when it is let go."""
        if not all(member.stopped for member in engine.members()):
            return
        self._plan = engine.planned(self._batch)
        self._ghost = engine.set_aside()
        engine.disarm()
        engine.restart()

    def _thaw_when_overtaken(self, now: Moment, ghost: Ghost) -> None:
        newest = now.progress.batch if now.progress else -1
        if not now.engine.committed(self._batch) or now.now_ms - self._frozen_ms < self._window_ms:
            return
        self._since = max(newest, self._batch) if self._since is None else self._since
        if newest < self._since + FURTHER_BATCHES and done(now) < now.total:
            return
        if self._plan is not None:
            self._replayed = now.engine.planned(self._batch) == self._plan
        self._thawed_at = f"committed batch {self._batch} and went on to batch {newest} ({done(now):,} records)"
        ghost.signal(signal.SIGCONT, self._pids)


class TwoDrivers(ProcessStrike):
    """A second driver is started on the checkpoint of one that is alive and well."""

    stops_engine = True  # who of both survives is not for the supervisor to mend before it is over

    def __init__(self, context: Context, hold_ms: float) -> None:
        super().__init__(context)
        self.land_within_ms = self._ready_ms + SLOW_MS
        self.hold_ms = hold_ms
        self._first: list[int] = []
        self._second: Ghost | None = None
        self._ends: dict[str, str] = {}

    def inject(self, now: Moment) -> str:
        self._first = pids_of(chosen(now.engine, is_driver))
        self._second = now.engine.second()
        second = pids_of(chosen(self._second, is_driver))
        return f"a second driver ({_list(second)}) was started beside the first ({_list(self._first)})"

    def landed(self, now: Moment) -> str:
        """Running is not enough: it told of a batch of its own, or one of both lost against the other."""
        assert self._second
        self._look(now)
        told = self._second.told()
        if told and now.engine.alive():
            return f"the second told of its batch {told.batch} while the first ran"
        lost = [end for end in self._ends.values() if any(word in end for word in LOST_WORDS)]
        if lost or (told and self._ends):
            return "; ".join(self._ends.values())
        return ""

    def holds(self, now: Moment, landed_ms: int) -> bool:
        self._look(now)
        return super().holds(now, landed_ms) and len(self._ends) < 2

    def heal(self, now: Moment) -> None:
        assert self._second
        self._look(now)
        self._ends.setdefault("second", "the second was ended in order")
        self._second.stop()
        self._going_on.begin(now.engine)
        if not now.engine.alive():
            now.engine.disarm()
            now.engine.restart()

    def healed(self, now: Moment) -> str:
        went_on = self._going_on.seen(now)
        return f"{'; '.join(self._ends.values())}; one driver alone, {went_on}" if went_on else ""

    def _look(self, now: Moment) -> None:
        """Who has ended by itself."""
        assert self._second
        for name, driver in (("first", now.engine), ("second", self._second)):
            if name not in self._ends and not driver.alive():
                self._ends[name] = f"the {name} ended with exit code {driver.exit_code()}: {_last_words(driver)}"


def _some(engine: Engine, which: Callable[[Member], bool], what: str) -> tuple[Member, ...]:
    found = chosen(engine, which)
    if not found:
        raise CannotStrikeError(f"{engine.manifest.id} has no {what} here")
    return found


def _list(pids: list[int]) -> str:
    return ", ".join(map(str, pids)) or "none"


def _last_words(driver: Engine | Ghost) -> str:
    """The line that tells of the conflict if there is one, else the last."""
    lines = [line.strip() for line in driver.tail(200) if line.strip()]
    telling = [line for line in lines if any(word in line for word in LOST_WORDS)]
    return (telling or lines or ["no word"])[-1][:200]


def _hold_ms(spec: FaultSpec, usual: Mapping[str, str]) -> float:
    return seconds(spec.options.get("for", usual["for"]), "for") * 1000


def stop(spec: FaultSpec, context: Context) -> Fault:
    return _resuming(spec, Stop(context), context)


def pause(spec: FaultSpec, context: Context) -> Fault:
    return struck(spec, Pause(context, everything, "every process of the engine", _hold_ms(spec, PAUSE)), context)


def pause_jvm(spec: FaultSpec, context: Context) -> Fault:
    return struck(spec, Pause(context, is_driver_jvm, "JVM of a driver", _hold_ms(spec, PAUSE)), context)


def pause_executor(spec: FaultSpec, context: Context) -> Fault:
    strike = Pause(context, is_executor, "executor of its own process", _hold_ms(spec, PAUSE))
    return _with_executors(spec, strike, context)


def kill_executor(spec: FaultSpec, context: Context) -> Fault:
    return _with_executors(spec, KillHelper(context, is_executor, "executor of its own process"), context)


def kill_python(spec: FaultSpec, context: Context) -> Fault:
    return struck(spec, KillHelper(context, is_python_worker, "Python worker of Spark"), context)


def kill_jvm(spec: FaultSpec, context: Context) -> Fault:
    return _resuming(spec, KillHalf(context, is_driver_jvm, "JVM of a driver", _hold_ms(spec, WITHOUT)), context)


def kill_driver(spec: FaultSpec, context: Context) -> Fault:
    return _resuming(spec, KillHalf(context, is_driver, "process that was started", _hold_ms(spec, WITHOUT)), context)


def crash_loop(spec: FaultSpec, context: Context) -> Fault:
    options = {**LOOP, **spec.options}
    times = int(options["times"])
    return _resuming(spec, CrashLoop(context, times, seconds(options["after"], "after") * 1000), context)


def kill_in_recovery(spec: FaultSpec, context: Context) -> Fault:
    missing = (*_does_not_resume(context), *missing_for(spec, context))
    if spec.when.point == "c4":
        missing = (*missing, "after c4 nothing is replayed that it could be killed in")
    return Idle(spec, missing) if missing else KillInRecovery(spec)


def zombie(spec: FaultSpec, context: Context) -> Fault:
    strike = Zombie(context)
    if spec.when.point in ("c3", "c4"):
        strike.needs = (f"at {spec.when.point} nothing is left that it could write late (c1 and c2 are in the write)",)
    return _resuming(spec, strike, context)


def two_drivers(spec: FaultSpec, context: Context) -> Fault:
    return _resuming(spec, TwoDrivers(context, _hold_ms(spec, TOGETHER)), context)


def _does_not_resume(context: Context) -> tuple[str, ...]:
    engine = context.manifest
    return () if engine.resumes else (f"{engine.id} does not resume when it was ended, by its own manifest",)


def _resuming(spec: FaultSpec, strike: Strike, context: Context) -> Fault:
    strike.needs = (*_does_not_resume(context), *strike.needs)
    return struck(spec, strike, context)


def _with_executors(spec: FaultSpec, strike: Strike, context: Context) -> Fault:
    master = context.spec.master
    if context.manifest.ivy != "spark" or not master.startswith("local-cluster["):
        strike.needs = (
            f"executors are processes of their own here only under --master local-cluster[2,1,1024], not {master}",
        )
    return struck(spec, strike, context)


ANY_MOMENT = ("point", "batch", "offset", "time", "now")

KINDS = (
    Kind(
        "stop",
        "process",
        "SIGTERM to the driver, which ends in order, and a restart",
        "goes on where it was, no count changes: the baseline of all others",
        stop,
        needs="an engine that resumes",
    ),
    Kind(
        "pause",
        "process",
        "SIGSTOP to every process of the engine for a while, then SIGCONT",
        "is silent for so long and catches up, no count changes",
        pause,
        options=PAUSE,
        moments=ANY_MOMENT,
    ),
    Kind(
        "pause-jvm",
        "process",
        "SIGSTOP to the JVM of the driver for a while, while its Python lives on",
        "is silent for so long and catches up, no count changes",
        pause_jvm,
        needs="a driver with a JVM",
        options=PAUSE,
        moments=ANY_MOMENT,
    ),
    Kind(
        "pause-executor",
        "process",
        "SIGSTOP to all executors for a while: the driver waits for tasks that do not answer",
        "waits or runs the tasks elsewhere, no count changes",
        pause_executor,
        needs="--master local-cluster[...]",
        options=PAUSE,
    ),
    Kind(
        "kill-executor",
        "process",
        "SIGKILL to one executor",
        "gets a new executor and runs its tasks again, no count changes",
        kill_executor,
        needs="--master local-cluster[...]",
    ),
    Kind(
        "kill-python",
        "process",
        "SIGKILL to one of Spark's Python workers",
        "runs the task again, or stops loudly where a task may fail but once (local[*]); no count changes",
        kill_python,
        needs="a job whose rows go through Python workers",
        moments=ANY_MOMENT,
    ),
    Kind(
        "kill-jvm",
        "process",
        "SIGKILL to the JVM of the driver alone, and a restart when its Python has ended too or had time to",
        "the Python half ends, nothing is written twice, no count changes",
        kill_jvm,
        needs="a driver with a JVM, an engine that resumes",
        options=WITHOUT,
        moments=ANY_MOMENT,
    ),
    Kind(
        "kill-driver",
        "process",
        "SIGKILL to the process that was started alone, and a restart when the others have ended too or had time to",
        "its JVM ends with it and holds the checkpoint no longer, no count changes",
        kill_driver,
        needs="an engine that resumes",
        options=WITHOUT,
        moments=ANY_MOMENT,
    ),
    Kind(
        "crash-loop",
        "process",
        "SIGKILL to everything, and again as soon as it goes on or after a while, so many times",
        "converges: resumes from wherever each kill left it, no count changes",
        crash_loop,
        needs="an engine that resumes",
        options=LOOP,
    ),
    Kind(
        "kill-in-recovery",
        "process",
        "SIGKILL to everything at a crash point, and again at that point of the same batch when it is replayed",
        "replays the batch a second time with the same plan, no count changes",
        kill_in_recovery,
        needs="an engine that resumes, crash points in its sink (c1 to c3)",
        moments=("point",),
    ),
    Kind(
        "zombie",
        "process",
        "the driver is frozen in its write at c1 or c2, a second one overtakes it, and the first is thawed",
        "what the first writes late is refused or changes nothing, and it ends loudly; no count changes",
        zombie,
        needs="an engine that resumes, crash point c1 or c2 in its sink",
        moments=("point",),
    ),
    Kind(
        "two-drivers",
        "process",
        "a second driver is started on the checkpoint of the first, which runs on",
        "one of both stops loudly before it has written what the other writes, no count changes",
        two_drivers,
        needs="an engine that resumes",
        options=TOGETHER,
    ),
)
