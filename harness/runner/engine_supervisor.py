"""Supervises an engine during a run: its starts, its ends, and its first errors after a fault."""

from __future__ import annotations

import re
from typing import Protocol

from harness.rundir.store import Store
from harness.runner.abort_causes import AbortCauses, EngineGone
from harness.runner.world.base import World
from harness.util.texts import shown

COLLECT_EVERY_S = 0.5
# Number of restarts of an engine that a fault has stopped; if it still stops, it will not recover by itself.
# The pauses grow, so that a service outage of seconds does not use up all restarts.
RESTART_PAUSES_S = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 8.0, 8.0)
# Error lines of an engine, and how many of them the history keeps.
ERROR = re.compile(r"(^| )(ERROR|FATAL|CRITICAL)[ :]|^Traceback |^[\w.]*(Error|Exception)(:|$)")
MOST_ERRORS = 20
LONGEST_LINE = 300


class Tell(Protocol):
    """Appends one line to the history, with the run's time."""

    def __call__(self, kind: str, **facts: object) -> None: ...


class EngineSupervisor:
    """Supervises the engine. `resumes`: it may be killed and restarted."""

    def __init__(
        self, world: World, store: Store, tell: Tell, abort_causes: AbortCauses, *, resumes: bool, patience: float
    ) -> None:
        self._engine, self._fault, self._clock = world.engine, world.fault, world.clock
        self._store, self._tell, self._excuses = store, tell, abort_causes
        self._resumes, self._patience = resumes, patience
        self.starts = self.started_ms = 0
        self._ended_ms: int | None = None
        self._collected_ms = 0
        self._errors: set[str] = set()

    def collect(self, *, force: bool = False) -> None:
        """Copy evidence that the engine may purge."""
        now_ms = self._clock.now_ms()
        if force or now_ms - self._collected_ms >= COLLECT_EVERY_S * 1000:
            self._engine.collect()
            self._note_errors()
            self._collected_ms = now_ms

    def supervise(self) -> None:
        """Handle an engine that ended by itself. During and after a fault it is restarted, like a service manager would
        do: a loud stop is an outage, but no wrong count. Without a fault it has crashed."""
        engine, code = self._engine, self._engine.exit_code()
        struck = any(each.at_ms for each in self._fault.reports())
        again = list(self._store.history("restart"))
        times = len(again)
        if not struck or not self._resumes or times >= len(RESTART_PAUSES_S):
            after = f" for the {times + 1}th time" if times else " although no fault killed it"
            detail = f"the engine ended by itself with exit code {code}{after}"
            # An engine that no fault had killed has crashed, however busy the machine is.
            since_ms = again[0]["at_ms"] if again else self._clock.now_ms()
            raise EngineGone(self._excuses.unless_starved("crashed", detail, since_ms))
        if self._ended_ms is None:
            self._ended_ms = self._clock.now_ms()
        if self._clock.now_ms() - self._ended_ms < RESTART_PAUSES_S[times] * 1000 * self._patience:
            return
        self._tell("restart", exit_code=code, last_lines=engine.tail(5))
        engine.restart()

    def note_start(self) -> bool:
        """Record when the engine was up again, which is a figure of its recovery."""
        if (starts := self._engine.starts) == self.starts:
            return False
        self.starts, self._ended_ms, self.started_ms = starts, None, self._clock.now_ms()
        self._tell("started", times=starts)
        return True

    def _note_errors(self) -> None:
        """Record the engine's first error lines after a fault, and when they came."""
        if not any(each.at_ms for each in self._fault.reports()):
            return
        for line in self._engine.tail(20):
            if ERROR.search(line) and line not in self._errors and len(self._errors) < MOST_ERRORS:
                self._errors.add(line)
                self._tell("error", line=shown(line, LONGEST_LINE))
