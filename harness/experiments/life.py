"""One life of an engine, and all that was offered to it: a run whose load is decided while it goes on.

It goes through the nine steps as any other. What is appended to the load is told in the history before its first event
is sent, and what is expected is folded when the last one is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from generators.reel import Reel
from harness.model import EngineManifest, EngineReport, RunSpec, Segment
from harness.run import Run
from harness.running.screen import Screen
from harness.stored import StoredRun
from harness.worlds.base import World

# So long before a stretch begins it is appended: a fleet has to read of it and write its first records.
HORIZON_MS = 3000


@dataclass(frozen=True)
class Standing:
    """How an engine and its load stand, while more is to be decided."""

    at_ms: int  # since the epoch
    planned_until_ms: int
    due: int  # events, without the probes
    sent: int  # with them
    done: int  # by the engine's own word; 0 of one that tells nothing
    waits_ms: float  # for how long the oldest event that is not done has waited


Decide = Callable[[Standing], Sequence[Segment]]


class Life(Run):
    """`decide` says what follows; nothing: the load is complete."""

    def __init__(
        self,
        spec: RunSpec,
        manifest: EngineManifest,
        world: World,
        stored: StoredRun,
        screen: Screen,
        decide: Decide,
    ) -> None:
        super().__init__(spec, manifest, world, stored, screen)
        self._decide = decide
        self._complete = False

    def load(self) -> None:
        page = self._begin_load()
        if not self.manifest.progress:
            self.stillness = self._stillness()
        self.screen.phase("load", f"rates that are decided while it goes on{f', page {page}' if page else ''}")
        while not self.world.load_status().finished:
            self._tick()
            self._go_on()
        self._end_load()

    def _go_on(self) -> None:
        if self._complete or self._standing().at_ms < self.spec.tape.load_ms - HORIZON_MS:
            return
        if segments := self._decide(self._standing()):
            self._tell("stretch", from_ms=self.spec.tape.load_ms, segments=segments)
            self.spec = replace(self.spec, tape=replace(self.spec.tape, profile=(*self.spec.tape.profile, *segments)))
            self.reel = Reel(self.spec.tape)
            self.world.extend_load(segments)
        else:
            self._complete = True
            self.world.complete_load()

    def _standing(self) -> Standing:
        profile, at_ms = self.reel.load.profile, self.world.now_ms() - self.epoch_ms
        done = self._done()
        oldest_us = int(profile.inverse(np.array([min(done, profile.total - 1)]))[0])
        return Standing(
            at_ms=at_ms,
            planned_until_ms=self.spec.tape.load_ms,
            due=int(profile.first_due_at(np.array([at_ms * 1000]))[0]),
            sent=self.world.load_status().sent,
            done=done,
            waits_ms=max(0.0, at_ms - oldest_us / 1000),
        )

    def read(self, report: EngineReport) -> None:
        """What was offered is known to its end now."""
        super().read(report)
        self.store.write_json("spec.json", self.spec.public())
        self.fold()
        self.seal()
