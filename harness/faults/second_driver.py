"""Two drivers at once: a zombie that comes back, and a second driver that was started by mistake."""

from __future__ import annotations

import signal

from harness.engines.base import Engine, Ghost
from harness.faults.base import Context
from harness.faults.members import SLOW_MS, ProcessStrike, chosen, is_conflict, is_driver, last_words, listed, pids_of
from harness.faults.run_at_poll import Moment, done

FURTHER_BATCHES = 2


class Zombie(ProcessStrike):
    """A driver that was taken for dead in the middle of its write goes on after another one has done its work.

    It is thawed only when the batch's windows are over and the second driver has committed batches that were planned
    after that. Earlier, the next batch would correct the totals that it writes late, and nothing would show.
    """

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._window_ms = context.spec.window_ms
        # Time to freeze, to start a second one, to let the windows pass, to plan and run two batches, and to end.
        self.land_within_ms = 2 * self._ready_ms + self._window_ms + 2 * SLOW_MS
        self._pids: list[int] = []
        self._ghost: Ghost | None = None
        self._batch = -1
        self._plan: bytes | None = None
        self._frozen_ms = 0
        self._since: int | None = None
        self._overtaken = ""
        self._end = ""

    def inject(self, now: Moment) -> str:
        reached = now.engine.reached()
        assert reached is not None  # this fault waits for a crash point
        self.batch = self._batch = reached.batch
        self._frozen_ms = now.now_ms
        self._pids = pids_of(now.engine.members())
        now.engine.signal(signal.SIGSTOP, self._pids)
        return f"SIGSTOP to {listed(self._pids)} in its write of batch {reached.batch} at {reached.point}"

    def landed(self, now: Moment) -> str:
        if self._ghost is None:
            self._set_aside(now.engine)
        elif not self._overtaken:
            self._thaw_when_overtaken(now, self._ghost)
        elif not self._ghost.alive() and not self._end:
            return self._what_it_said(now, self._ghost)
        return ""

    def heal(self, now: Moment) -> None:
        """End the zombie; thaw the engine if the zombie was not set aside yet."""
        if self._ghost:
            self._ghost.stop()
        else:
            now.engine.signal(signal.SIGCONT, self._pids)

    def healed(self, now: Moment) -> str:
        if self._ghost and self._ghost.members():
            return ""
        # Progress is not required after a ghost: no records may be left.
        alone = "nothing is left of the first driver, and the second runs"
        return "; ".join(filter(None, (self._end, alone))) if now.engine.alive() else ""

    def _what_it_said(self, now: Moment, ghost: Ghost) -> str:
        """Return the proof if the driver ended with a conflict: it detects that at its commit, after the write. After
        another end it may not have written at all."""
        said = last_words(ghost)
        end = f"it ended with exit code {ghost.exit_code()}: {said}"
        if is_conflict(said):
            return f"state T while a second driver {self._overtaken}; SIGCONT, and {end}"
        self._end = f"{end}, so it is not known whether it had written"
        self.land_within_ms = now.now_ms - self._frozen_ms  # nothing more will come
        return ""

    def _set_aside(self, engine: Engine) -> None:
        """Act only when all threads are stopped: one that still ran would go on writing when it is thawed."""
        if not all(member.stopped for member in engine.members()):
            return
        self._plan = engine.planned(self._batch)
        self._ghost = engine.detach()
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
            self.replayed = now.engine.planned(self._batch) == self._plan
        self._overtaken = f"committed batch {self._batch} and went on to batch {newest} ({done(now):,} records)"
        ghost.signal(signal.SIGCONT, self._pids)


class TwoDrivers(ProcessStrike):
    """A second driver is started on the checkpoint of a healthy one."""

    stops_engine = True  # the supervisor must not interfere before it is decided which driver survives

    def __init__(self, context: Context, hold_ms: float) -> None:
        super().__init__(context)
        self.land_within_ms = self._ready_ms + SLOW_MS
        self.hold_ms = hold_ms
        self._first: list[int] = []
        self._second: Ghost | None = None
        self._ends: dict[str, str] = {}

    def inject(self, now: Moment) -> str:
        self._first = pids_of(chosen(now.engine, is_driver))
        self._second = now.engine.start_second()
        second = pids_of(chosen(self._second, is_driver))
        return f"a second driver ({listed(second)}) was started beside the first ({listed(self._first)})"

    def landed(self, now: Moment) -> str:
        """Require a batch of the second driver, or a conflict that ended one of the two. Running is not enough."""
        assert self._second
        self._poll(now)
        told = self._second.told()
        if told and now.engine.alive():
            return f"the second reported its batch {told.batch} while the first ran"
        lost = [end for end in self._ends.values() if is_conflict(end)]
        if lost or (told and self._ends):
            return "; ".join(self._ends.values())
        return ""

    def holds(self, now: Moment, landed_ms: int) -> bool:
        self._poll(now)
        return super().holds(now, landed_ms) and len(self._ends) < 2

    def heal(self, now: Moment) -> None:
        assert self._second
        self._poll(now)
        self._ends.setdefault("second", "the second was stopped cleanly")
        self._second.stop()
        self._going_on.begin(now.engine)
        if not now.engine.alive():
            now.engine.disarm()
            now.engine.restart()

    def healed(self, now: Moment) -> str:
        went_on = self._going_on.seen(now)
        return f"{'; '.join(self._ends.values())}; one driver alone, {went_on}" if went_on else ""

    def _poll(self, now: Moment) -> None:
        """Record which driver has ended by itself."""
        assert self._second
        for name, driver in (("first", now.engine), ("second", self._second)):
            if name not in self._ends and not driver.alive():
                self._ends[name] = f"the {name} ended with exit code {driver.exit_code()}: {last_words(driver)}"
