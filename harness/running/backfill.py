"""After the stream: all of its input is counted once more, by a batch, into results that were emptied before.

The two share the run, its log and its files, so that they can be held against each other cell by cell.
"""

from __future__ import annotations

from harness.engines.base import Engine
from harness.model import Backfill
from harness.observe import as_columns
from harness.running.answers import covers
from harness.running.life import Tell
from harness.running.screen import Screen
from harness.store import Store
from harness.stored import BACKFILLED
from harness.worlds.base import World

LOOK_EVERY_S = 0.1


class Backfilling:
    def __init__(self, world: World, store: Store, screen: Screen, tell: Tell, *, deadline_s: float) -> None:
        self._world, self._store, self._screen, self._tell, self._deadline_s = world, store, screen, tell, deadline_s

    def all(self, stream_cpu_s: float) -> None:
        """`stream_cpu_s`: what the stream had used when it was done, since its last start."""
        engine, ends = self._world.count_again(), self._world.end_offsets()
        self._screen.phase("backfill", f"{engine.manifest.id} counts {sum(ends.values()):,} records as a batch")
        began_ms = self._world.now_ms()
        engine.start()
        while not (why := self._broke_off(engine, began_ms)) and not covers(engine.progress(), ends):
            self._world.pause(LOOK_EVERY_S)
        took_ms, cpu_s = self._world.now_ms() - began_ms, self._world.cpu_s(engine)
        if not why:
            self._store.write_table(BACKFILLED, as_columns(self._world.results()))
        engine.stop()
        self._tell("backfill", told=Backfill(engine.manifest.id, why, took_ms, cpu_s, stream_cpu_s))

    def _broke_off(self, engine: Engine, began_ms: int) -> str:
        if not engine.alive():
            return f"it ended by itself with exit code {engine.exit_code()}: {' / '.join(engine.tail(3))}"
        waited_s = (self._world.now_ms() - began_ms) / 1000
        return f"it was not done after {waited_s:.0f} s" if waited_s > self._deadline_s else ""
