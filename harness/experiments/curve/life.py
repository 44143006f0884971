"""One life of an engine, and all that was offered to it: a run whose load is decided while it goes on.

It goes through the nine steps as any other. Each piece of the load is told in the history before its first event is
sent, and what is expected is folded when the last one is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import msgspec
import numpy as np

from generators.reel import Reel
from harness.experiments.curve.plateau import Piece, Standing
from harness.measuring import processed
from harness.model import EngineManifest, EngineReport, RunSpec, Segment
from harness.run import Run
from harness.running.screen import Screen
from harness.stored import StoredRun
from harness.worlds.base import World

# So long before a piece begins it is told: a fleet has to read of it and to write its first records.
HORIZON_MS = 3000

Decide = Callable[[Sequence[Piece], Sequence[Standing]], Piece | None]


def segment(piece: Piece, window_ms: int) -> Segment:
    return Segment(window_ms, piece.rate_per_s, piece.rate_per_s)


def beginning_with(spec: RunSpec, first: Piece) -> RunSpec:
    """The same run, of whose load only the first piece is known."""
    return replace(spec, tape=replace(spec.tape, profile=(segment(first, spec.window_ms),), warm_up=()))


def pieces_of(run: StoredRun) -> list[Piece]:
    """What a life was offered."""
    return [msgspec.convert(told["piece"], Piece) for told in run.store.history("piece")]


class Life(Run):
    """`decide` says what follows; nothing: the load is complete."""

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
        self._decide = decide
        self._complete = False

    def load(self) -> None:
        page = self._begin_load()
        if not self.manifest.progress:
            self.stillness = self._stillness()
        self._tell("piece", from_ms=0, piece=self.pieces[0])
        self.screen.phase("load", f"rates that are decided while it goes on{f', page {page}' if page else ''}")
        while not self.world.load_status().finished:
            self._tick()
            if not self._complete and self._at_ms >= self.spec.tape.load_ms - HORIZON_MS:
                self._go_on()
        self._end_load()

    def _go_on(self) -> None:
        self.standings.append(self._standing())
        piece = self._decide(self.pieces, self.standings)
        if piece is None:
            self._complete = True
            self.world.complete_load()
            return
        self._tell("piece", from_ms=self.spec.tape.load_ms, piece=piece)
        self.pieces.append(piece)
        added = segment(piece, self.spec.window_ms)
        self.spec = replace(self.spec, tape=replace(self.spec.tape, profile=(*self.spec.tape.profile, added)))
        self.reel = Reel(self.spec.tape)
        self.world.extend_load([added])

    @property
    def _at_ms(self) -> int:
        return self.world.now_ms() - self.epoch_ms

    def _standing(self) -> Standing:
        profile, at_ms, done = self.reel.load.profile, self._at_ms, self._done()
        due = int(profile.first_due_at(np.array([at_ms * 1000]))[0])
        oldest_ms = int(profile.inverse(np.array([min(done, profile.total - 1)]))[0]) / 1000
        told = [line.took_ms for line in processed.told(self.store) if line.took_ms]
        waits_ms = 0.0 if done >= due else max(0.0, at_ms - oldest_ms)
        return Standing(at_ms, due, done, waits_ms, batches=len(told), busy_ms=float(sum(told)))

    def read(self, report: EngineReport) -> None:
        """What was offered is known to its end now."""
        super().read(report)
        self.store.write_json("spec.json", self.spec.public())
        self.fold()
        self.seal()
