"""Faults that change something while the engine is down: its checkpoint, its config, its job.

The engine is killed while it stands still, the change is made and verified, and it is started again. Then it goes on,
or it stops loudly. In that case the change is undone, as its operator would do, and it must go on with the old state.
For a moment of progress it is killed before its next write, if it can be held there: then the effect comes from the
change and not from a half-written batch.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from harness.engines import complaint
from harness.engines.base import Reached
from harness.faults.base import Context, Fault
from harness.faults.run_at_poll import Moment, done
from harness.faults.strike import Idle, Strike, Struck, missing_for, need_more_to_do, unresumed
from harness.model import FaultSpec
from harness.util.texts import shown

# Time to reach the point, to be killed and to be examined, on a busy machine.
SLOW_MS = 60_000.0
QUIET = "c1"


class Downtime(Strike):
    """The base class: families define the change, its proof, and its undoing."""

    by_results = False  # without progress reports, the written results show that it goes on

    def __init__(self, spec: FaultSpec, context: Context) -> None:
        self._ready_ms = context.manifest.ready_s * 1000
        self._nothing_within_ms = self._ready_ms * context.spec.patience
        self.land_within_ms = self._ready_ms + SLOW_MS
        self.heal_within_ms = self._ready_ms + SLOW_MS
        self._stands = spec.when.kind == "point"
        self._asks = not self._stands and QUIET in context.claim.crash_points
        self.reached: Reached | None = None
        self._killed = ""
        self._starts = 0
        self._before = 0
        self._up_ms = 0  # first poll after its restart

    @abstractmethod
    def check(self, now: Moment) -> None:
        """Raise CannotStrikeError if there is nothing to change. The engine is up."""

    @abstractmethod
    def deed(self, now: Moment) -> None:
        """Make the change. The engine is down."""

    @abstractmethod
    def proof(self, now: Moment) -> str:
        """Return the proof of the change, observed after the restart."""

    @abstractmethod
    def undo(self, now: Moment) -> str:
        """Undo the change, and return a sentence about it. The engine is down."""

    @abstractmethod
    def effect(self, now: Moment) -> str:
        """Return remarks once the engine has gone on."""

    def take_down(self, now: Moment) -> str:
        """End the engine and return the proof."""
        return now.engine.kill()

    def borne(self, now: Moment) -> bool:
        """Return whether the engine has shown that it works despite the change."""
        return self.went_on(now)

    def inject(self, now: Moment) -> str:
        self.check(now)
        if self._asks:
            now.engine.arm(QUIET, 0)
            return "a hold before its next write was requested"
        need_more_to_do(now)
        self._strike(now)
        return self._killed

    def landed(self, now: Moment) -> str:
        if not self._killed and now.engine.reached():
            self._strike(now)
        if not self._killed:
            if done(now) >= now.total > 0:
                self.land_within_ms = 0.0  # no further write follows, before which it could be held
            return ""
        seen = self.proof(now)
        return f"{self._killed}; {seen}" if seen and self._asks else seen

    def holds(self, now: Moment, landed_ms: int) -> bool:
        """Hold until it has gone on or stopped."""
        self._up_ms = self._up_ms or now.now_ms
        if not now.engine.alive() or now.engine.starts > self._starts:
            self.refused = f"it stopped loudly: {_last_words(now)}"
        elif not self.borne(now) and now.now_ms - landed_ms > self._nothing_within_ms:
            seen = "it made progress once, and none" if self.went_on(now) else "it made no progress"
            self.refused = f"{seen} for {self._nothing_within_ms / 1000:.0f} s{_complaint(now)}"
        return not self.refused and not self.borne(now)

    def heal(self, now: Moment) -> None:
        """Undo the change. The supervisor restarts an engine that stopped by itself; one that is up is killed here."""
        if not self._killed:
            now.engine.disarm()
        elif self.refused:
            was_up = now.engine.alive()
            if was_up:
                now.engine.kill()
            self._before = max(self._before, done(now))  # it may have progressed before it stopped
            self._up_ms = now.now_ms
            self.refused += f"; {self.undo(now)}"
            if was_up:
                now.engine.restart()

    def healed(self, now: Moment) -> str:
        if not self._killed:
            return "the hold was withdrawn, and nothing was changed"
        if not self.went_on(now):
            return ""
        on = f"from {self._before:,} to {done(now):,} records" if now.progress else "and changed its results"
        words = (self.refused, f"it went on {on}", self.effect(now))
        return "; ".join(word for word in words if word)

    def _strike(self, now: Moment) -> None:
        engine = now.engine
        self.reached = engine.reached()
        killed = self.take_down(now)
        engine.collect()
        engine.disarm()
        newest = engine.progress()
        self._before = sum(newest.offsets.values()) if newest else 0
        at = f"at {self.reached.point} of batch {self.reached.batch}: " if self.reached else ""
        self._killed = f"{at}{killed}"
        self.deed(now)
        engine.restart()
        self._starts = engine.starts

    def went_on(self, now: Moment) -> bool:
        if not now.engine.alive():
            return False
        if now.engine.manifest.progress:
            return done(now) > self._before
        return now.changed is not None and now.changed.since_ms >= self._up_ms


def down(spec: FaultSpec, strike: Downtime, context: Context) -> Fault:
    """Make the fault, or an idle one with the reasons why this engine can't have it."""
    manifest = context.manifest
    missing = [*unresumed(manifest)]
    if not (manifest.progress or strike.by_results):
        missing.append(f"{manifest.id} reports no progress (progress = false), so nothing would show that it goes on")
    if spec.when.point == "c4":
        missing.append("the job is not held at c4: use c1, c2 or c3")
    missing += missing_for(spec, context)
    return Idle(spec, tuple(missing)) if missing else Struck(spec, strike, context.spec.patience)


def _last_words(now: Moment) -> str:
    """Return the exit code and the exception at the end of a stopped engine's log."""
    words = _joined(now.engine.last_words().lines) or "no message"
    return f"exit code {now.engine.exit_code()}, {words!r}"


def _complaint(now: Moment) -> str:
    """Return the exception in the log of an engine that is up and does nothing: it may fail and retry for ever."""
    words = _joined(complaint.exception(now.engine.last_words().lines))
    return f", and its log ends with {words!r}" if words else ""


def _joined(lines: Sequence[str]) -> str:
    return "; ".join(shown(line, 300) for line in lines)
