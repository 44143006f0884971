"""A run whose engine starts behind: some minutes of events are in Kafka before it starts.

They are sent at full speed while nothing reads them. The engine starts together with the load.
"""

from __future__ import annotations

from collections.abc import Callable

from harness.runner.run import TICK_S, Run
from harness.util.texts import many

# Least send rate of a backlog on all tested machines; the load starts after its end.
SENT_PER_S = 100_000


class Behind(Run):
    """A run with a backlog (`tape.waits`): the events before the load start."""

    def start_engine(self) -> None:
        """Send the backlog; the engine starts later. Opening events lie after it and in its newest window: an engine
        with one watermark for all partitions would find older ones late."""
        page = self._begin_load()
        seconds, watch = f"{self.schedule.warm_up_ms / 1000:g} s", f", page {page}" if page else ""
        self.screen.phase("backlog", f"{many(self.schedule.warm_up_total, 'event')} of {seconds} in Kafka{watch}")
        self._wait_until(lambda: self.fleet.status().sent >= self.schedule.warm_up_total)
        self.put_away()
        self.opening = self.marking.open_at(self.epoch_ms - 1)
        self._wait_until(lambda: self.clock.now_ms() >= self.epoch_ms)

    def put_away(self) -> None:
        """Do nothing: a backlog stays in Kafka."""

    def _wait_until(self, done: Callable[[], bool]) -> None:
        """Wait without supervision: there is no engine yet, and a fleet that breaks off raises by itself."""
        while not done():
            self.abort_causes.watch_room(self.schedule.total)
            self.clock.pause(TICK_S)

    def load(self) -> None:
        """Start the engine; from here on it is supervised and metered."""
        started_ms = self.clock.now_ms()
        waiting = sum(self.log.ends().values()) - len(self.opening)
        self._tell("backlog", waiting=waiting)
        behind = f"with {many(waiting, 'event')} waiting in Kafka"
        self.screen.phase("engine", f"the first counts by {self.spec.engine}, {behind}")
        self.engine.start()
        self._await_answers(self.opening, started_ms)
        self._send_load("")

    @property
    def _ready_s(self) -> float:
        """Add the backlog's length: an engine that takes longer than that for it never catches up."""
        return super()._ready_s + self.schedule.warm_up_ms / 1000

    @property
    def _lead_ms(self) -> int:
        return self.schedule.warm_up_total * 1000 // SENT_PER_S
