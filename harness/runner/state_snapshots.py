"""Keeps an engine's state at random batches of the run, and has them read when the engine has ended.

They are drawn by the seed: a record of each equal part of the load, and the first batch that is committed with it. A
batch is kept once; where one has the records of two parts, the next batch is kept as well.
"""

from __future__ import annotations

import random

from harness.judging.stored_run import STATES
from harness.model import HarnessError
from harness.rundir.store import Store
from harness.runner.engine_supervisor import Tell
from harness.runner.world.base import World


def drawn(seed: int, states: int, records: int) -> list[int]:
    """So many records of a load, one of each part, in order."""
    dice = random.Random(f"states of {seed}")
    return [int((part + dice.random()) * records / states) for part in range(states)]


class States:
    def __init__(self, world: World, store: Store, tell: Tell, due: list[int]) -> None:
        self._world, self._store, self._tell, self._due = world, store, tell, due
        self._batch = -1  # the last one that was kept
        self.kept = 0

    def poll(self) -> None:
        """Cheap, unless a state is due."""
        if not self._due:
            return
        done = self._world.engine.progress()
        if done is None or sum(done.offsets.values()) <= self._due[0] or done.batch == self._batch:
            return
        begun_ms = self._world.now_ms()
        kept = self._world.engine.keep_state(self.kept + 1, done.batch)
        if kept is None:  # a fault has taken it away: the next batch has one again
            return
        self.kept += 1
        self._batch = kept.batch
        del self._due[0]
        self._tell("state", kept=kept, took_ms=self._world.now_ms() - begun_ms)

    def read(self) -> None:
        """What can't be read is told, and no file takes its place."""
        try:
            self._store.write_table(STATES, self._world.engine.read_states())
        except HarnessError as error:
            self._tell("unread", file=STATES, why=str(error))
