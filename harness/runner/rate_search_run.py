"""A run of a rate search: one start of an engine, with a load that is decided while it runs.

It has the nine steps of any run. Each load step is written to the history before its first event is sent, and the
expected counts are computed after the last one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from generators.schedule import Schedule
from harness.experiments.curve.plateau import Piece, Standing
from harness.judging import progress_curve
from harness.judging.stored_run import StoredRun
from harness.model import EVENT_TIME, EngineManifest, EngineReport, RunSpec, Segment, Stopped
from harness.results.oldest_unseen import Unseen
from harness.runner.run import Run
from harness.runner.screen import Screen
from harness.runner.world.base import World
from harness.terminal.command_end import ONCE_MORE

# Each piece is announced this early: a fleet has to read it and to generate its first records.
HORIZON_MS = 3000

Decide = Callable[[Sequence[Piece], Sequence[Standing]], Piece | None]


def segment(piece: Piece, window_ms: int) -> Segment:
    return Segment(window_ms, piece.rate_per_s, piece.rate_per_s)


def beginning_with(spec: RunSpec, first: Piece) -> RunSpec:
    """Return the same run with only the first piece of its load."""
    return replace(spec, tape=replace(spec.tape, profile=(segment(first, spec.window_ms),), warm_up=(), waits=False))


class RateSearchRun(Run):
    """A run whose load grows: `decide` returns the next piece, or None if the load is complete."""

    grows = True

    def __init__(
        self,
        spec: RunSpec,
        manifest: EngineManifest,
        world: World,
        stored: StoredRun,
        screen: Screen,
        *,
        first: Piece,
        decide: Decide,
    ) -> None:
        super().__init__(beginning_with(spec, first), manifest, world, stored, screen)
        self.pieces: list[Piece] = [first]
        self.standings: list[Standing] = []
        self.stopped: Stopped | None = None  # the signal that ended the load early
        self._decide = decide
        self._complete = False
        self._unseen: Unseen | None = None  # from the load start on

    def load(self) -> None:
        self._begin_load()
        self._tell("piece", from_ms=0, piece=self.pieces[0])
        self._await_epoch()
        self._show(self.pieces[0])
        while not self.fleet.status().finished:
            try:
                self._tick()
            except Stopped as stopped:
                self._end_early(stopped)
            if not self._complete and self._at_ms >= self.spec.tape.load_ms - HORIZON_MS:
                self._go_on()
        self._end_load()

    def _show(self, piece: Piece, more: str = "") -> None:
        self.screen.phase("load", f"the end of {piece.rate_per_s:,.0f}/s ({piece.why.value}){more}")

    def _end_early(self, stopped: Stopped) -> None:
        """End the load and judge what was offered so far, since it took minutes. A second signal aborts."""
        if self.stopped:  # the run still ends in order
            raise Stopped(stopped.exit_code - 128)
        self.stopped = stopped
        self.screen.phase(
            "load", f"the end of the load after {stopped.name}; what was sent will be judged; {ONCE_MORE}"
        )
        self._end_growth()

    def _end_growth(self) -> None:
        if not self._complete:
            self._complete = True
            self.fleet.complete()

    def _go_on(self) -> None:
        self.standings.append(self._standing())
        piece = self._decide(self.pieces, self.standings)
        if piece is None:
            self._end_growth()
            return
        self._tell("piece", from_ms=self.spec.tape.load_ms, piece=piece)
        self.pieces.append(piece)
        added = segment(piece, self.spec.window_ms)
        self.spec = replace(self.spec, tape=replace(self.spec.tape, profile=(*self.spec.tape.profile, added)))
        self.schedule = Schedule(self.spec.tape)
        self.fleet.extend([added])
        if piece.plateau != self.pieces[-2].plateau:
            behind_s = self.standings[-1].behind_ms / 1000
            self._show(piece, f"; {behind_s:.1f} s behind after {self.pieces[-2].rate_per_s:,.0f}/s")

    @property
    def _at_ms(self) -> int:
        return self.clock.now_ms() - self.epoch_ms

    def _standing(self) -> Standing:
        """If an engine reports progress rarely or never, the results seen by readers count as done."""
        at_ms, told = self._at_ms, progress_curve.read_progress(self.store)
        unseen_ms = self._unseen_ms(at_ms)
        told_ms = min(at_ms, told[-1].at_ms - self.epoch_ms) if told else at_ms
        seldom = at_ms - told_ms > self.spec.window_ms and not self.claim.final
        done = self._done() if self.manifest.progress else 0
        by_readers = seldom or not self.manifest.progress
        if by_readers:
            done = max(done, self._due(at_ms - unseen_ms))
        load = self.fleet.status()
        took_ms = [line.took_ms for line in told if line.took_ms]
        return Standing(
            at_ms,
            self._due(at_ms),
            done,
            self._waits_ms(told_ms, done),
            batches=len(took_ms),
            busy_ms=float(sum(took_ms)),
            unsent_ms=max(0, load.intended - load.sent) / self.pieces[-1].rate_per_s * 1000,
            unseen_ms=unseen_ms,
            told_at_ms=None if by_readers else told_ms,
        )

    def _due(self, at_ms: float) -> int:
        return int(self.schedule.load.profile.first_due_at(np.array([int(at_ms * 1000)]))[0])

    def _waits_ms(self, told_ms: float, done: int) -> float:
        """Return the wait at its last report: rare reports are no lag. If the engine stops, readers see it."""
        if done >= self._due(told_ms):
            return 0.0
        profile = self.schedule.load.profile
        oldest_us = int(profile.inverse(np.array([min(done, profile.total - 1)]))[0])
        return max(0.0, told_ms - oldest_us / 1000)

    def _unseen_ms(self, at_ms: float) -> float:
        """Final-only sinks reveal no lag before a window closes; outside event time the window is unknown."""
        if self.claim.final or self.spec.time != EVENT_TIME:
            return 0.0
        if self._unseen is None:
            self._unseen = Unseen(self.oracle, self.epoch_ms, self.results.shows)
        return self._unseen.oldest_ms(self.schedule.load, at_ms)

    def read(self, report: EngineReport) -> None:
        """The whole load is known now: store it and compute the expectation."""
        super().read(report)
        self.store.write_json("spec.json", self.spec.public())
        self.fold()
        self.seal()
