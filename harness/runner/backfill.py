"""The backfill after the stream: a batch recounts all of its input into emptied results.

Both share the run, its log and its files, so they can be compared cell by cell. On request the batch is killed when it
has written half, and restarted: the results of that moment are kept as the proof.
"""

from __future__ import annotations

from typing import NamedTuple

from harness.engines.base import Engine
from harness.judging.stored_run import BACKFILLED, HALF_BACKFILLED
from harness.model import HALF_WRITTEN, Backfill
from harness.results.redis_scan import as_columns
from harness.rundir.store import Store
from harness.runner.result_polling import covers
from harness.runner.screen import Screen
from harness.runner.world.base import World
from harness.util.texts import many

POLL_EVERY_S = 0.1


class Spent(NamedTuple):
    took_ms: int
    cpu_s: float


class Backfilling:
    """Runs an engine that was not started yet."""

    def __init__(self, world: World, store: Store, screen: Screen, engine: Engine, *, deadline_s: float) -> None:
        self._results, self._host, self._clock = world.results, world.host, world.clock
        self._store, self._screen, self._engine = store, screen, engine
        self._ends, self._deadline_s = world.log.ends(), deadline_s
        self._since_ms = 0  # time of its last start

    def all(self, stream: Spent, *, kill: bool) -> Backfill:
        """Run the batch. `stream` is the cost of the stream from its last start until it was done."""
        engine = self._engine
        killed = ", killed half-way through" if kill else ""
        records = many(sum(self._ends.values()), "record")
        self._screen.phase("backfill", f"a batch job of {engine.manifest.id} over {records}{killed}")
        began_ms = self._since_ms = self._clock.now_ms()
        if kill:
            engine.arm(HALF_WRITTEN, 0)
        engine.start()
        killed, cpu_s = self._kill_half_way() if kill else ("", 0.0)
        while not (why := self._broke_off()) and not self._done():
            self._clock.pause(POLL_EVERY_S)
        took_ms, cpu_s = self._clock.now_ms() - began_ms, cpu_s + self._host.cpu_s(engine)
        if not why:
            self._keep(BACKFILLED)
        engine.stop()
        return Backfill(engine.manifest.id, why, took_ms, cpu_s, stream.cpu_s, killed, stream.took_ms)

    def _kill_half_way(self) -> tuple[str, float]:
        """Return proof and CPU time of the kill. An engine that finished before it was seen there is not killed."""
        engine = self._engine
        while not engine.reached() and not self._broke_off() and not self._done():
            self._clock.pause(POLL_EVERY_S)
        if not engine.reached():
            return "", 0.0
        self._keep(HALF_BACKFILLED)
        cpu_s, how = self._host.cpu_s(engine), engine.kill()
        engine.disarm()
        engine.restart()
        self._since_ms = self._clock.now_ms()
        return how, cpu_s

    def _keep(self, name: str) -> None:
        self._store.write_table(name, as_columns(self._results.rows()))

    def _done(self) -> bool:
        return covers(self._engine.progress(), self._ends)

    def _broke_off(self) -> str:
        if not self._engine.alive():
            return f"it ended by itself with exit code {self._engine.exit_code()}: {' / '.join(self._engine.tail(3))}"
        waited_s = (self._clock.now_ms() - self._since_ms) / 1000
        return f"it had not finished after {waited_s:.0f} s" if waited_s > self._deadline_s else ""
