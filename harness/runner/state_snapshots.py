"""Copies an engine's state at random batches of the run; the copies are read after the engine has ended.

The seed draws a record of each equal part of the load; the first batch committed with it is copied. A batch is copied
once; if it has the records of two parts, the next batch is copied as well.
"""

from __future__ import annotations

import random

from harness.judging.stored_run import STATES
from harness.model import HarnessError
from harness.rundir.store import Store
from harness.runner.engine_supervisor import Tell
from harness.runner.world.base import World


def drawn(seed: int, states: int, records: int) -> list[int]:
    """Draw one record of each part of the load, in order."""
    dice = random.Random(f"states of {seed}")
    return [int((part + dice.random()) * records / states) for part in range(states)]


class States:
    def __init__(self, world: World, store: Store, tell: Tell, due: list[int]) -> None:
        self._engine, self._clock = world.engine, world.clock
        self._store, self._tell, self._due = store, tell, due
        self._batch = -1  # the last copied batch
        self.kept = 0

    def poll(self) -> None:
        """Copy the state if one is due; otherwise this is cheap."""
        if not self._due:
            return
        done = self._engine.progress()
        if done is None or sum(done.offsets.values()) <= self._due[0] or done.batch == self._batch:
            return
        begun_ms = self._clock.now_ms()
        kept = self._engine.keep_state(self.kept + 1, done.batch)
        if kept is None:  # a fault has removed it: the next batch has one again
            return
        self.kept += 1
        self._batch = kept.batch
        del self._due[0]
        self._tell("state", kept=kept, took_ms=self._clock.now_ms() - begun_ms)

    def read(self) -> None:
        """Report what can't be read; store no file in its place."""
        try:
            self._store.write_table(STATES, self._engine.read_states())
        except HarnessError as error:
            self._tell("unread", file=STATES, why=str(error))
