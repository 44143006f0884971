"""The kill family: SIGKILL to everything of the engine at a chosen moment, then a restart.

What is proved, from the engine's own durable files and not from what it says:

- at c1, c2, c3: when it died the batch was planned and not committed; after the restart it is committed with the very
  same plan. It was replayed.
- at c4: when it died the batch was committed and the next one not planned; after the restart the next one is planned
  and the old plan stands. Nothing was replayed. That moment lasts some milliseconds, so it is hunted: freeze, look,
  then kill, or thaw and wait for the next batch.
- at a batch or an offset: nothing of it was left, and afterwards progress went on, not from behind.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from enum import Enum

from harness.engines.base import Engine
from harness.faults.base import Clock, Fault
from harness.faults.idle import Idle
from harness.model import EngineManifest, FaultReport, FaultSpec, Progress, SinkClaim

HUNT_EVERY_S = 0.001


def kill(spec: FaultSpec, manifest: EngineManifest, claim: SinkClaim, now_ms: Clock) -> Fault:
    """The member of the family that fits, or the reasons why none does."""
    missing = _missing(spec, manifest, claim)
    if missing:
        return Idle(spec, missing)
    if spec.point == "c4":
        return KillBetweenBatches(spec, now_ms)
    return KillAtPoint(spec, now_ms) if spec.point else KillAtProgress(spec, now_ms)


def _missing(spec: FaultSpec, manifest: EngineManifest, claim: SinkClaim) -> tuple[str, ...]:
    missing = []
    if not manifest.resumes:
        missing.append(f"{manifest.id} does not resume after a kill, by its own manifest")
    if spec.point and spec.point not in claim.crash_points:
        points = ", ".join(claim.crash_points) or "none"
        missing.append(f"sink {claim.name} of {manifest.id} has no crash point {spec.point} (it has: {points})")
    if not spec.point and not manifest.progress:
        missing.append(f"{manifest.id} writes no progress, so nobody knows when it is at {spec.text.partition('@')[2]}")
    return tuple(missing)


class Phase(Enum):
    WAITING = "waiting for its moment"
    KILLING = "the engine is being killed"
    DOWN = "the engine is down"
    BACK = "the engine was started again and has not yet gone on"
    OVER = "over"


@dataclass(frozen=True)
class Moment:
    """What one look at the run shows."""

    engine: Engine
    progress: Progress | None
    total: int


class _Kill:
    """What all kills share: waiting, down, back, over. The kinds say when, and what proves it."""

    colour = "tab:red"
    needs: tuple[str, ...] = ()

    def __init__(self, spec: FaultSpec, now_ms: Clock) -> None:
        self._spec, self._now_ms = spec, now_ms
        self._engine: Engine | None = None
        self._phase = Phase.WAITING
        self._landed = False
        self._healed = False
        self._replayed: bool | None = None
        self._proof: list[str] = []
        self._at_ms = 0
        self._batch: int | None = None

    def poll(self, engine: Engine, progress: Progress | None, total: int) -> None:
        self._engine = engine
        now = Moment(engine, progress, total)
        if self._phase is Phase.WAITING:
            self._wait(now)
        if self._phase is Phase.DOWN:
            self._bring_back(engine)
        elif self._phase is Phase.BACK:
            self._watch(now)

    def busy(self) -> bool:
        return self._phase in (Phase.KILLING, Phase.DOWN)

    def settled(self) -> bool:
        return self._phase in (Phase.WAITING, Phase.OVER)

    def heal(self) -> None:
        if self._engine is None:
            return
        self._engine.disarm()
        if self._phase is Phase.DOWN:
            self._bring_back(self._engine)

    def report(self) -> FaultReport:
        proof = "; ".join(self._proof) or f"did not land: {self._why_not()}"
        healed = self._healed or not self._at_ms
        return FaultReport(self._spec, self._landed, healed, proof, self._at_ms, self._batch, self._replayed)

    def _wait(self, now: Moment) -> None:
        raise NotImplementedError

    def _bring_back(self, engine: Engine) -> None:
        raise NotImplementedError

    def _watch(self, now: Moment) -> None:
        raise NotImplementedError

    def _why_not(self) -> str:
        return f"{self._spec.text.partition('@')[2]} never came"

    def _kill(self, engine: Engine) -> None:
        """From here on the engine's end is ours; a thread may be the one that does it."""
        self._phase = Phase.KILLING
        self._at_ms = self._now_ms()
        self._proof.append(engine.kill())
        self._phase = Phase.DOWN

    def _restart(self, engine: Engine) -> None:
        engine.disarm()
        engine.restart()
        self._phase = Phase.BACK

    def _over(self) -> None:
        self._healed = True
        self._phase = Phase.OVER


class KillAtPoint(_Kill):
    """c1, c2, c3: the job stands still there until it is killed."""

    _armed = False
    _plan: bytes | None = None

    def _wait(self, now: Moment) -> None:
        if not self._armed:
            now.engine.arm(self._spec.point, self._spec.batch or 0)
            self._armed = True
        if reached := now.engine.reached():
            self._batch = reached.batch
            self._kill(now.engine)

    def _bring_back(self, engine: Engine) -> None:
        assert self._batch is not None
        self._plan = engine.planned(self._batch)
        committed = engine.committed(self._batch)
        self._landed = not committed
        state = "committed" if committed else "not committed"
        plan = "planned" if self._plan is not None else "planned as far as the engine says"
        self._proof.append(f"batch {self._batch} stood at {self._spec.point}, {plan} and {state}, when it died")
        self._restart(engine)

    def _watch(self, now: Moment) -> None:
        assert self._batch is not None
        if not now.engine.committed(self._batch):
            return
        if self._plan is not None:
            self._replayed = now.engine.planned(self._batch) == self._plan
            same = "the very same plan: it was replayed" if self._replayed else "another plan: it was NOT replayed"
            self._proof.append(f"after the restart batch {self._batch} was committed with {same}")
        else:
            self._proof.append(f"after the restart batch {self._batch} was done, by the engine's progress")
        self._over()


class KillBetweenBatches(_Kill):
    """c4: committed, and the next batch not planned. A thread of its own hunts for that moment."""

    def __init__(self, spec: FaultSpec, now_ms: Clock) -> None:
        super().__init__(spec, now_ms)
        self._hunter: threading.Thread | None = None
        self._called_off = False
        self._missed = 0
        self._error: Exception | None = None
        self._plan: bytes | None = None

    def poll(self, engine: Engine, progress: Progress | None, total: int) -> None:
        if self._error:
            raise self._error
        super().poll(engine, progress, total)

    def heal(self) -> None:
        self._called_off = True
        if self._hunter:
            self._hunter.join()
        super().heal()

    def _wait(self, now: Moment) -> None:
        if self._hunter is None:
            now.engine.arm(self._spec.point, self._spec.batch or 0)
            self._hunter = threading.Thread(target=self._hunt, args=(now.engine,), name="fault-c4", daemon=True)
            self._hunter.start()

    def _hunt(self, engine: Engine) -> None:
        tried = -1
        try:
            while not self._called_off and self._phase is Phase.WAITING:
                reached = engine.reached()
                if reached and reached.batch > tried and engine.committed(reached.batch):
                    tried = reached.batch
                    self._strike(engine, tried)
                time.sleep(HUNT_EVERY_S)
        except Exception as error:  # noqa: BLE001  (raised again by `poll`, where the run sees it)
            self._error = error

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
        beyond = "planned already" if next_planned else "not planned"
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
    """For every engine that tells its progress: at a batch, or at a share of all events."""

    def __init__(self, spec: FaultSpec, now_ms: Clock) -> None:
        super().__init__(spec, now_ms)
        self._done_before = 0
        self._drained = False

    def _wait(self, now: Moment) -> None:
        if now.progress is None or not self._is_time(now.progress, now.total):
            return
        self._done_before = _done(now.progress)
        self._drained = self._done_before >= now.total
        if not self._drained and now.engine.alive():
            self._kill(now.engine)

    def _is_time(self, progress: Progress, total: int) -> bool:
        if self._spec.batch is not None:
            return progress.batch >= self._spec.batch
        return _done(progress) >= (self._spec.offset_share or 0.0) * total

    def _bring_back(self, engine: Engine) -> None:
        newest = engine.progress()  # it may have done more between our look and its end
        if newest is not None:
            self._done_before, self._batch = _done(newest), newest.batch
        self._landed = True
        self._proof.append(f"it had told of {self._done_before:,} records done when it died")
        self._restart(engine)

    def _watch(self, now: Moment) -> None:
        if now.progress is None or _done(now.progress) <= self._done_before:
            return
        self._proof.append(f"after the restart it went on to {_done(now.progress):,} records")
        self._over()

    def _why_not(self) -> str:
        if self._drained:
            return f"when {self._spec.text.partition('@')[2]} was seen, all had been done already"
        return super()._why_not()


def _done(progress: Progress) -> int:
    """Records below the offsets; topics of a run are fresh, so that offsets count from 0."""
    return sum(progress.offsets.values())
