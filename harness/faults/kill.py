"""The kill family: SIGKILL to all of the engine's processes at a chosen moment, then a restart.

The proof comes from the engine's own durable files and not from its messages:

- at c1, c2, c3: at its death the batch was planned and not committed; after the restart it is committed with the very
  same plan. It was replayed.
- at c4: at its death the batch was committed and the next one not planned; after the restart the next one is planned
  and the old plan is unchanged. Nothing was replayed. That moment lasts some milliseconds, so it is hunted: freeze,
  check, then kill, or thaw and wait for the next batch.
- at a batch or an offset: no process was left, and afterwards progress went on, not from behind.
"""

from __future__ import annotations

import threading
import time
from dataclasses import replace

from harness.engines.base import Engine
from harness.faults.base import Context, Fault, Kind
from harness.faults.run_at_poll import Moment, done
from harness.faults.strike import Course, Idle, Phase, missing_for, nothing_left, unresumed
from harness.model import FaultReport, FaultSpec

HUNT_EVERY_S = 0.001


def kill(spec: FaultSpec, context: Context) -> Fault:
    """Return the fitting kill, or an idle fault with the reasons why none fits."""
    if missing := (*unresumed(context.manifest), *missing_for(spec, context)):
        return Idle(spec, missing)
    if spec.when.point == "c4":
        return KillBetweenBatches(spec)
    return KillAtPoint(spec) if spec.when.point else KillAtProgress(spec)


class _Kill(Course):
    """The course of all kills: the engine is being killed (struck), down (landed), and back but not yet going on
    (healing). Subclasses define the moment and the proof.

    It is not a Strike: the proof is taken between kill and restart, and a kill without proof is undone nevertheless.
    """

    needs: tuple[str, ...] = ()

    def __init__(self, spec: FaultSpec) -> None:
        super().__init__(spec)
        self._now_ms = 0  # time of the last poll: a kill may come from a thread
        self._replayed: bool | None = None

    def poll(self, now: Moment) -> None:
        self._now_ms = now.now_ms
        if self._phase is Phase.WAITING:
            self._wait(now)
        if self._phase is Phase.LANDED:
            self._landed_ms = now.now_ms
            self._bring_back(now.engine)
        elif self._phase is Phase.HEALING:
            self._watch(now)

    def heal(self, now: Moment) -> None:
        if self._phase is not Phase.OVER:
            now.engine.disarm()
        if self._phase is Phase.LANDED:
            self._bring_back(now.engine)

    def reports(self) -> tuple[FaultReport, ...]:
        return tuple(replace(report, replayed=self._replayed) for report in super().reports())

    def _wait(self, now: Moment) -> None:
        raise NotImplementedError

    def _bring_back(self, engine: Engine) -> None:
        raise NotImplementedError

    def _watch(self, now: Moment) -> None:
        raise NotImplementedError

    def _kill(self, engine: Engine) -> None:
        """Kill the engine: from here on its end is our doing. May run in a thread."""
        self._phase = Phase.STRUCK
        self._at_ms = self._at_ms or self._now_ms
        self._proof.append(engine.kill())
        self._phase = Phase.LANDED

    def _restart(self, engine: Engine) -> None:
        engine.disarm()
        engine.restart()
        self._phase = Phase.HEALING

    def _over(self) -> None:
        self._healed, self._healed_ms = True, self._now_ms
        self._phase = Phase.OVER


class Replayed(_Kill):
    """The proof of a kill in the middle of a batch: it was not committed, and was committed afterwards."""

    _plan: bytes | None = None

    def _where(self) -> str:
        """Return where the batch was, as the end of `batch 3 was ...`."""
        raise NotImplementedError

    def _bring_back(self, engine: Engine) -> None:
        assert self._batch is not None
        self._plan = engine.planned(self._batch)
        committed = engine.committed(self._batch)
        self._landed = not committed
        state = "committed" if committed else "not committed"
        plan = "planned" if self._plan is not None else "planned as far as the engine reports"
        self._proof.append(f"batch {self._batch} was {self._where()}, {plan} and {state}, when it died")
        self._restart(engine)

    def _watch(self, now: Moment) -> None:
        assert self._batch is not None
        if not now.engine.committed(self._batch):
            return
        if self._plan is not None:
            self._replayed = now.engine.planned(self._batch) == self._plan
            same = "the same plan: it was replayed" if self._replayed else "another plan: it was NOT replayed"
            self._proof.append(f"after the restart batch {self._batch} was committed with {same}")
        else:
            self._proof.append(f"after the restart the engine reported batch {self._batch} as done")
        self._over()


class KillAtPoint(Replayed):
    """A kill at c1, c2 or c3, where the job is held until then."""

    def _wait(self, now: Moment) -> None:
        if self._has_come(now):
            self._kill(now.engine)

    def _where(self) -> str:
        return f"at {self._spec.when.point}"

    def _why_not(self) -> str:
        if not self._armed:
            return super()._why_not()
        point = self._spec.when.point
        return (
            f"{super()._why_not()}. The job was asked to stop at {point} and did not report that it got there: a "
            f"job whose manifest has crash_points = [{point!r}] must check for the file `crash_path`"
        )


class Hunted(_Kill):
    """A kill at a moment that lasts some milliseconds. A separate thread hunts for it."""

    def __init__(self, spec: FaultSpec) -> None:
        super().__init__(spec)
        self._hunter: threading.Thread | None = None
        self._called_off = False
        self._missed = 0
        self._error: Exception | None = None

    def prepare(self, now: Moment) -> None:
        """Called once, before the hunt."""
        raise NotImplementedError

    def look(self, engine: Engine) -> None:
        """Look once, and kill the engine if this is the moment. Called in the thread."""
        raise NotImplementedError

    def poll(self, now: Moment) -> None:
        if self._error:
            raise self._error
        super().poll(now)

    def heal(self, now: Moment) -> None:
        self._called_off = True
        if self._hunter:
            self._hunter.join()
        super().heal(now)

    def _wait(self, now: Moment) -> None:
        if self._hunter is None and self._waiting.is_over(now):
            self.prepare(now)
            name = f"fault-{self._spec.action}"
            self._hunter = threading.Thread(target=self._hunt, args=(now.engine,), name=name, daemon=True)
            self._hunter.start()

    def _hunt(self, engine: Engine) -> None:
        try:
            while not self._called_off and self._phase is Phase.WAITING:
                self.look(engine)
                time.sleep(HUNT_EVERY_S)
        except Exception as error:  # noqa: BLE001  (raised again by `poll`, in the run's thread)
            self._error = error


class KillBetweenBatches(Hunted):
    """A kill at c4: committed, and the next batch not planned."""

    def __init__(self, spec: FaultSpec) -> None:
        super().__init__(spec)
        self._tried = -1
        self._plan: bytes | None = None

    def prepare(self, now: Moment) -> None:
        now.engine.arm(self._spec.when.point, self._spec.when.batch)

    def look(self, engine: Engine) -> None:
        reached = engine.reached()
        if reached and reached.batch > self._tried and engine.committed(reached.batch):
            self._tried = reached.batch
            self._strike(engine, reached.batch)

    def _strike(self, engine: Engine, batch: int) -> None:
        engine.freeze()
        if engine.planned(batch + 1) is None:
            self._batch = batch
            self._kill(engine)
        else:
            self._missed += 1
            engine.thaw()

    def _bring_back(self, engine: Engine) -> None:
        assert self._batch is not None
        self._plan = engine.planned(self._batch)
        next_planned = engine.planned(self._batch + 1) is not None
        self._landed = self._plan is not None and engine.committed(self._batch) and not next_planned
        here = "was committed" if self._landed else "can't be shown to have been committed"
        beyond = "already planned" if next_planned else "not planned"
        self._proof.append(f"batch {self._batch} {here} and batch {self._batch + 1} {beyond} when it died")
        self._restart(engine)

    def _watch(self, now: Moment) -> None:
        assert self._batch is not None
        if self._landed and now.engine.planned(self._batch + 1) is None:
            return
        if self._landed:
            self._replayed = now.engine.planned(self._batch) != self._plan
            self._proof.append(f"after the restart the next batch was {self._batch + 1}: nothing was replayed")
        self._over()

    def _why_not(self) -> str:
        if self._missed:
            return f"the moment between commit and next plan was missed {self._missed} times"
        return super()._why_not()


class KillAtProgress(_Kill):
    """A kill for every engine: at a batch, a share of all events, or a time."""

    def __init__(self, spec: FaultSpec) -> None:
        super().__init__(spec)
        self._done_before = 0
        self._nothing_left = ""

    def _wait(self, now: Moment) -> None:
        if not self._waiting.is_over(now):
            return
        self._done_before = done(now)
        self._nothing_left = nothing_left(now)
        if not self._nothing_left and now.engine.alive():
            self._kill(now.engine)

    def _bring_back(self, engine: Engine) -> None:
        newest = engine.progress()  # it may have progressed between our poll and its end
        if newest is not None:
            self._done_before, self._batch = sum(newest.offsets.values()), newest.batch
        self._landed = True
        self._proof.append(f"it had reported {self._done_before:,} records as processed when it died")
        self._restart(engine)

    def _watch(self, now: Moment) -> None:
        if not now.engine.manifest.progress:
            self._proof.append("it was started again; it reports no progress")
            self._over()
        elif done(now) > self._done_before:
            self._proof.append(f"after the restart it went on to {done(now):,} records")
            self._over()

    def _why_not(self) -> str:
        return self._nothing_left or super()._why_not()


KINDS = (
    Kind(
        "kill",
        "SIGKILL to every process of the engine, then a restart; at a crash point of the sink or by progress",
        "goes on where it was: c1 to c3 replay the batch, c4 replays nothing; no count changes",
        kill,
        needs="an engine that resumes; crash points in its sink for c1 to c4",
    ),
)
