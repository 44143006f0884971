"""Signals to an engine's processes: it is asked to stop, frozen for a while, or loses one process; it is killed several
times, or while it recovers."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

from harness.engines.base import Engine, Member
from harness.faults.base import Context
from harness.faults.kill import KillAtPoint
from harness.faults.members import SLOW_MS, ProcessStrike, at_least_one, chosen, is_driver, is_executor, listed, pids_of
from harness.faults.run_at_poll import Moment


class Stop(ProcessStrike):
    """SIGTERM to the driver alone: it has to stop cleanly, and resume as if nothing had happened."""

    stops_engine = True

    def inject(self, now: Moment) -> str:
        pids = pids_of(chosen(now.engine, is_driver))
        now.engine.signal(signal.SIGTERM, pids)
        return f"SIGTERM to the driver ({listed(pids)})"

    def landed(self, now: Moment) -> str:
        if now.engine.alive():
            return ""
        code = now.engine.exit_code()
        return f"it ended with exit code {code}, {'a clean stop' if code == 0 else 'not cleanly'}"

    def heal(self, now: Moment) -> None:
        self._restart(now.engine)

    def healed(self, now: Moment) -> str:
        return self._going_on.seen(now)


class Pause(ProcessStrike):
    """SIGSTOP to all members or to some: nothing is broken, only delayed."""

    def __init__(self, context: Context, which: Callable[[Member], bool], what: str, hold_ms: float) -> None:
        super().__init__(context)
        self._which, self._what, self.hold_ms = which, what, hold_ms
        self._pids: list[int] = []

    def inject(self, now: Moment) -> str:
        self._pids = pids_of(at_least_one(now.engine, self._which, self._what))
        now.engine.signal(signal.SIGSTOP, self._pids)
        return f"SIGSTOP to the {self._what} ({listed(self._pids)})"

    def landed(self, now: Moment) -> str:
        there = chosen(now.engine, self._which)
        if not there or not all(member.stopped for member in there):
            return ""
        return f"state T: {listed(pids_of(there))}"

    def heal(self, now: Moment) -> None:
        now.engine.signal(signal.SIGCONT, pids_of(self._frozen(now)))

    def healed(self, now: Moment) -> str:
        return "" if self._frozen(now) else "SIGCONT, and no process is in state T any more"

    def _frozen(self, now: Moment) -> tuple[Member, ...]:
        return chosen(now.engine, lambda member: member.stopped)


class KillHelper(ProcessStrike):
    """SIGKILL to one process whose work others should take over: an executor, a Python worker."""

    def __init__(self, context: Context, which: Callable[[Member], bool], what: str) -> None:
        super().__init__(context)
        self._which, self._what = which, what
        self._known: list[int] = []
        self._pid = 0

    def inject(self, now: Moment) -> str:
        there = at_least_one(now.engine, self._which, self._what)
        self._known = pids_of(there)
        # The daemon is the parent of Spark's other Python workers.
        self._pid = next((m.pid for m in reversed(there) if m.parent in self._known), self._known[-1])
        self._going_on.begin(now.engine)
        now.engine.signal(signal.SIGKILL, [self._pid])
        return f"SIGKILL to the {self._what} {self._pid} (there: {listed(self._known)})"

    def landed(self, now: Moment) -> str:
        return "" if self._pid in pids_of(now.engine.members()) else f"process {self._pid} is gone"

    # There is nothing to heal: the engine has to recover.

    def healed(self, now: Moment) -> str:
        new = [pid for pid in pids_of(chosen(now.engine, self._which)) if pid not in self._known]
        went_on = self._going_on.seen(now)
        if not went_on or (self._which is is_executor and not new):
            return ""
        return f"{self._what} {listed(new)} replaced it; {went_on}" if new else went_on


class KillHalf(ProcessStrike):
    """SIGKILL to the driver's Python or to its JVM alone. Reports the fate of the other half, then restarts."""

    stops_engine = True

    def __init__(self, context: Context, which: Callable[[Member], bool], what: str, hold_ms: float) -> None:
        super().__init__(context)
        self._which, self._what, self.hold_ms = which, what, hold_ms
        self._pids: list[int] = []
        self._rest = ""

    def inject(self, now: Moment) -> str:
        self._pids = pids_of(at_least_one(now.engine, self._which, self._what))
        now.engine.signal(signal.SIGKILL, self._pids)
        return f"SIGKILL to the {self._what} ({listed(self._pids)}) alone"

    def landed(self, now: Moment) -> str:
        left = set(pids_of(now.engine.members())) & set(self._pids)
        return "" if left else f"process {listed(self._pids)} is gone"

    def holds(self, now: Moment, landed_ms: int) -> bool:
        return super().holds(now, landed_ms) and bool(_of_driver(now))

    def heal(self, now: Moment) -> None:
        left = _of_driver(now)
        if left:
            names = ", ".join(f"{Path(m.command[0]).name if m.command else '?'} {m.pid}" for m in left)
            self._rest = f"{names} still ran after {self.hold_ms / 1000:g} s and was killed"
        else:
            self._rest = f"no other process survived (exit code {now.engine.exit_code()})"
        self._restart(now.engine)

    def healed(self, now: Moment) -> str:
        went_on = self._going_on.seen(now)
        return f"{self._rest}; started again, {went_on}" if went_on else ""


def _of_driver(now: Moment) -> tuple[Member, ...]:
    return chosen(now.engine, lambda member: not member.of_cluster)


class CrashLoop(ProcessStrike):
    """Kills again as soon as the engine goes on or `after` has passed, a given number of times."""

    def __init__(self, context: Context, times: int, after_ms: float) -> None:
        super().__init__(context)
        self._times, self._after_ms = times, after_ms
        self.land_within_ms = times * (after_ms + SLOW_MS)
        self._started_ms = 0
        self._lives: list[str] = []

    def inject(self, now: Moment) -> str:
        self._lives.append("during its work")
        return self._kill(now)

    def landed(self, now: Moment) -> str:
        age_ms = now.now_ms - self._started_ms
        went_on = self._going_on.seen(now)
        if went_on or age_ms >= self._after_ms:
            self._lives.append(f"{age_ms / 1000:.1f} s after its restart{', going on' if went_on else ''}")
            self._kill(now)
        return (
            f"killed {self._times} times, and no process was left each time: {'; '.join(self._lives)}"
            if len(self._lives) == self._times
            else ""
        )

    # There is nothing to heal: it was restarted after each kill.

    def healed(self, now: Moment) -> str:
        went_on = self._going_on.seen(now)
        return f"after that {went_on}" if went_on else ""

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
