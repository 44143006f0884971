"""The common course of a fault: wait, strike, prove the effect, hold, undo, prove the undoing. Families define the
steps.

Deadlines, the report, and undoing in every state are implemented here, once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import replace
from enum import Enum

from harness.engines.base import RestartOffsets
from harness.faults.base import Context, Fault
from harness.faults.run_at_poll import Moment, done
from harness.faults.when import Waiting, words
from harness.model import EngineManifest, FaultReport, FaultSpec
from harness.util.durations import seconds

LARGE_BATCH = 0.1  # of all records: a fault that waits for a share of them may be passed over


class CannotStrikeError(Exception):
    """Raised by `inject`: its target does not exist here. Nothing was done; the fault is n/a."""


def need_more_to_do(now: Moment) -> None:
    """Require unprocessed records: otherwise neither the effect nor the recovery could be observed."""
    if why := nothing_left(now):
        raise CannotStrikeError(why)


def nothing_left(now: Moment) -> str:
    """Return why a fault comes too late; "" while records are left. Between two batches no moment is seen."""
    if not done(now) >= now.total > 0:
        return ""
    newest, why = now.progress, ""
    if newest and newest.rows >= LARGE_BATCH * now.total:
        why = f", because batch {newest.batch:,} had the last {newest.rows:,} of them"
    return (
        f"all records had already been processed when its moment came{why}; use an earlier moment, a longer "
        "--duration, or smaller batches (`maxOffsetsPerTrigger` in Spark)"
    )


class Strike(ABC):
    """The part that a family implements. `landed` and `healed` are polled and return a proof; "" means not yet."""

    colour = "tab:red"
    land_within_ms = 20_000.0
    hold_ms = 0.0  # how long its effect lasts after its proof
    heal_within_ms = 60_000.0
    stops_engine = False  # the fault keeps the engine down from `inject` until `heal`

    # What it has found out, for the report.
    batch: int | None = None  # the batch that it struck, if known
    replayed: bool | None = None
    refused = ""  # how the engine stopped because of it; "" if it went on
    ignored = ""  # the part of the change without effect; "" if all of it took effect
    restart_offsets = RestartOffsets()  # where a changed engine began
    stateless = False  # there was no state to begin with

    def __init__(self, hold_ms: float = 0.0) -> None:
        self.hold_ms = hold_ms

    @abstractmethod
    def inject(self, now: Moment) -> str:
        """Do it, and return a description."""

    @abstractmethod
    def landed(self, now: Moment) -> str:
        """Return the proof that it took effect: observed outside, not in our own variables."""

    def holds(self, now: Moment, landed_ms: int) -> bool:
        """Return whether its effect should last on."""
        return now.now_ms - landed_ms < self.hold_ms

    def heal(self, now: Moment) -> None:  # noqa: B027  (many faults leave nothing behind)
        """Undo it, if it has to be undone. Called once, also if it never took effect."""

    @abstractmethod
    def healed(self, now: Moment) -> str:
        """Return the proof that it is undone."""


class Idle:
    """A fault that reports why it did not happen. A planned one is unreachable (n/a)."""

    def __init__(self, spec: FaultSpec, missing: tuple[str, ...] = ()) -> None:
        self.needs = missing
        self._spec = spec

    def poll(self, now: Moment) -> None:
        pass

    def busy(self) -> bool:
        return False

    def settled(self) -> bool:
        return True

    def over(self) -> bool:
        return True

    def heal(self, now: Moment) -> None:
        pass

    def reports(self) -> tuple[FaultReport, ...]:
        if not self._spec.planned:
            return ()
        why = "n/a: " + "; ".join(self.needs)
        return (FaultReport(self._spec, landed=False, healed=True, proof=why, reachable=False),)


Lacks = Callable[[FaultSpec, Context], Iterable[str]]


def struck_by(make: Callable[[FaultSpec, Context], Strike], *lacks: Lacks) -> Callable[[FaultSpec, Context], Fault]:
    """Return what makes a fault: the strike, or an idle fault with all reasons why this run can't have it."""

    def fault(spec: FaultSpec, context: Context) -> Fault:
        strike = make(spec, context)  # refuses options that make no sense, also where the run can't have it
        missing = tuple(reason for reasons in (*lacks, missing_for) for reason in reasons(spec, context))
        return Idle(spec, missing) if missing else Struck(spec, strike, context.spec.patience)

    return fault


def resuming(_: FaultSpec, context: Context) -> tuple[str, ...]:
    return unresumed(context.manifest)


def length_ms(spec: FaultSpec) -> float:
    """Return the option `for`."""
    return seconds(spec.options["for"], "for") * 1000


def unresumed(engine: EngineManifest) -> tuple[str, ...]:
    """Return why the engine can't be killed."""
    return () if engine.resumes else (f"{engine.id} does not resume after a kill: its manifest says resumes = false",)


def missing_for(spec: FaultSpec, context: Context) -> tuple[str, ...]:
    """Return what the engine lacks for the fault's moment."""
    when, claim, engine = spec.when, context.claim, context.manifest
    if when.kind == "point" and when.point not in claim.crash_points:
        points = ", ".join(claim.crash_points) or "none"
        return (f"sink {claim.name} of {engine.id} has no crash point {when.point} (crash_points: {points})",)
    if when.kind in ("batch", "offset") and not engine.progress:
        return (f"{engine.id} reports no progress (progress = false), so the harness can't detect {words(when)}",)
    if when.kind == "batch" and engine.progress_group:
        return (f"{engine.id} commits offsets to a consumer group, and these do not show {words(when)}",)
    return ()


class Phase(Enum):
    WAITING = "waiting"
    STRUCK = "struck, and not yet seen to land"
    LANDED = "landed"
    HEALING = "being healed"
    OVER = "over"


class Course:
    """The state of a fault between its moment and its report; see `harness.faults.base.Fault`."""

    def __init__(self, spec: FaultSpec) -> None:
        self._spec = spec
        self._waiting = Waiting(spec.when)
        self._phase = Phase.WAITING
        self._proof: list[str] = []
        self._at_ms = self._landed_ms = self._healed_ms = 0
        self._landed = self._healed = self._armed = False
        self._batch: int | None = None

    def busy(self) -> bool:
        return self._phase in (Phase.STRUCK, Phase.LANDED)

    def settled(self) -> bool:
        return self._phase in (Phase.WAITING, Phase.OVER)

    def over(self) -> bool:
        return self._phase is Phase.OVER

    def reports(self) -> tuple[FaultReport, ...]:
        return (
            FaultReport(
                self._spec,
                landed=self._landed,
                healed=self._healed or not self._at_ms,
                proof="; ".join(self._proof) or f"did not land: {self._why_not()}",
                at_ms=self._at_ms,
                batch=self._batch,
                landed_ms=self._landed_ms if self._landed else 0,
                healed_ms=self._healed_ms,
            ),
        )

    def _why_not(self) -> str:
        return f"{words(self._spec.when)} never came{self._waiting.how_far()}"

    def _has_come(self, now: Moment) -> bool:
        """Check the moment. At a crash point the job is held until the fault took effect or failed to."""
        if self._spec.when.kind != "point":
            return self._waiting.is_over(now)
        if not self._armed:
            if not self._waiting.is_over(now):
                return False
            now.engine.arm(self._spec.when.point, self._spec.when.batch)
            self._armed = True
        reached = now.engine.reached()
        self._batch = reached.batch if reached else None
        return reached is not None


class Struck(Course):
    """Runs a Strike through its course."""

    needs: tuple[str, ...] = ()  # a fault that needs what is not there is idle

    def __init__(self, spec: FaultSpec, strike: Strike, patience: float = 1.0) -> None:
        super().__init__(spec)
        self._strike, self._patience = strike, patience
        self._heal_ms = 0
        self._absent = ""

    def poll(self, now: Moment) -> None:
        if self._phase is Phase.WAITING and self._has_come(now):
            self._inject(now)
        if self._phase is Phase.STRUCK:
            self._see_it_land(now)
        elif self._phase is Phase.LANDED:
            if not self._strike.holds(now, self._landed_ms):
                self._undo(now)
        elif self._phase is Phase.HEALING:
            self._see_it_healed(now)

    def busy(self) -> bool:
        return self._strike.stops_engine and super().busy()

    def heal(self, now: Moment) -> None:
        self._let_go(now)
        if self._phase in (Phase.STRUCK, Phase.LANDED):
            self._undo(now)
        if self._phase is Phase.HEALING:
            self._see_it_healed(now)

    def reports(self) -> tuple[FaultReport, ...]:
        (report,) = super().reports()
        return (
            replace(
                report,
                proof=f"n/a: {self._absent}" if self._absent else report.proof,
                batch=report.batch if self._strike.batch is None else self._strike.batch,
                replayed=self._strike.replayed,
                reachable=not self._absent,
                colour=self._strike.colour,
                refused=self._strike.refused,
                ignored=self._strike.ignored,
                restored=self._strike.restart_offsets.restored,
                written=self._strike.restart_offsets.written,
                stateless=self._strike.stateless,
            ),
        )

    def _inject(self, now: Moment) -> None:
        try:
            self._proof.append(self._strike.inject(now))
        except CannotStrikeError as why:
            self._absent, self._phase = str(why), Phase.OVER
            self._let_go(now)
        else:
            self._at_ms, self._phase = now.now_ms, Phase.STRUCK

    def _see_it_land(self, now: Moment) -> None:
        if seen := self._strike.landed(now):
            self._landed, self._landed_ms, self._phase = True, now.now_ms, Phase.LANDED
            self._proof.append(seen)
            self._let_go(now)
        elif now.now_ms - self._at_ms > self._strike.land_within_ms * self._patience:
            within = f"{self._strike.land_within_ms * self._patience / 1000:.0f} s"
            self._proof.append(f"no effect was seen within {within}")
            self._undo(now)

    def _let_go(self, now: Moment) -> None:
        if self._armed:
            now.engine.disarm()
            self._armed = False

    def _undo(self, now: Moment) -> None:
        self._let_go(now)
        self._heal_ms, self._phase = now.now_ms, Phase.HEALING
        self._strike.heal(now)

    def _see_it_healed(self, now: Moment) -> None:
        if seen := self._strike.healed(now):
            self._healed, self._healed_ms, self._phase = True, now.now_ms, Phase.OVER
            self._proof.append(seen)
        elif now.now_ms - self._heal_ms > self._strike.heal_within_ms * self._patience:
            self._proof.append(
                f"it was not seen to be undone within {self._strike.heal_within_ms * self._patience / 1000:.0f} s"
            )
            self._phase = Phase.OVER
