"""A run whose engine starts behind: so many minutes of events lie in Kafka before it does.

They are sent as fast as they can be, while nothing reads them. The engine starts at the epoch, with the load.
"""

from __future__ import annotations

from collections.abc import Callable

from harness.runner.run import TICK_S, Run
from harness.util.texts import many

# So fast a backlog is sent at the least, on any machine that was tried; the epoch lies behind its end.
SENT_PER_S = 100_000


class Behind(Run):
    """`tape.waits`: what is sent before the epoch is the backlog."""

    def start_engine(self) -> None:
        """Nothing starts yet: what it will find is put there. Opening events lie behind it and in its newest window: an
        engine whose clock is one for all partitions would find older ones late."""
        page = self._begin_load()
        seconds, watch = f"{self.schedule.warm_up_ms / 1000:g} s", f", page {page}" if page else ""
        self.screen.phase("backlog", f"{many(self.schedule.warm_up_total, 'event')} of {seconds}{watch}")
        self._wait_until(lambda: self.world.load_status().sent >= self.schedule.warm_up_total)
        self.put_away()
        self.opening = self.marking.open_at(self.epoch_ms - 1)
        self._wait_until(lambda: self.world.now_ms() >= self.epoch_ms)

    def put_away(self) -> None:
        """A backlog stays where it is."""

    def _wait_until(self, done: Callable[[], bool]) -> None:
        """There is no engine yet that could be supervised; a fleet that breaks off says so itself."""
        while not done():
            self.abort_causes.watch_room(self.schedule.total)
            self.world.pause(TICK_S)

    def load(self) -> None:
        """From here on the engine is at work, and is accounted for."""
        started_ms = self.world.now_ms()
        waiting = sum(self.world.end_offsets().values()) - len(self.opening)
        self._tell("backlog", waiting=waiting)
        self.screen.phase("engine", f"{self.spec.engine} finds {many(waiting, 'event')} waiting")
        self.world.engine.start()
        self._await_answers(self.opening, started_ms)
        self._send_load("")

    @property
    def _ready_s(self) -> float:
        """One that takes longer for a backlog than it took to arise never catches up."""
        return super()._ready_s + self.schedule.warm_up_ms / 1000

    @property
    def _lead_ms(self) -> int:
        return self.schedule.warm_up_total * 1000 // SENT_PER_S
