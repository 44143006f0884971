"""The life of an engine in a run: its starts, its ends, and its first words about what was done to it."""

from __future__ import annotations

import re
from typing import Protocol

from harness.rundir.store import Store
from harness.runner.abort_causes import AbortCauses, EngineGone
from harness.runner.world.base import World
from harness.util.texts import shown

COLLECT_EVERY_S = 0.5
# An engine that a fault has made stop is started again so often; one that still stops will not come back by itself.
# The pauses grow, so that a service which is away for seconds does not use up all tries.
RESTART_PAUSES_S = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 8.0, 8.0)
# What an engine says when it noticed something; so many such lines of a run are kept in its history.
ERROR = re.compile(r"(^| )(ERROR|FATAL|CRITICAL)[ :]|^Traceback |^[\w.]*(Error|Exception)(:|$)")
MOST_ERRORS = 20
LONGEST_LINE = 300


class Tell(Protocol):
    """One line into the history, by the clock of the world."""

    def __call__(self, kind: str, **facts: object) -> None: ...


class EngineSupervisor:
    """`resumes`: it may be killed and started again."""

    def __init__(
        self, world: World, store: Store, tell: Tell, abort_causes: AbortCauses, *, resumes: bool, patience: float
    ) -> None:
        self._world, self._store, self._tell, self._excuses = world, store, tell, abort_causes
        self._resumes, self._patience = resumes, patience
        self.starts = self.started_ms = 0
        self._ended_ms: int | None = None
        self._collected_ms = 0
        self._errors: set[str] = set()

    def collect(self, *, force: bool = False) -> None:
        """Keep what of its evidence it may purge."""
        now_ms = self._world.now_ms()
        if force or now_ms - self._collected_ms >= COLLECT_EVERY_S * 1000:
            self._world.engine.collect()
            self._note_errors()
            self._collected_ms = now_ms

    def supervise(self) -> None:
        """The engine ended by itself. While a fault is about it is started again, as whatever keeps services alive
        would do: to stop loudly is an outage, and no wrong count. Without a fault it has crashed."""
        engine, code = self._world.engine, self._world.engine.exit_code()
        struck = any(each.at_ms for each in self._world.fault.reports())
        again = list(self._store.history("restart"))
        times = len(again)
        if not struck or not self._resumes or times >= len(RESTART_PAUSES_S):
            after = f" for the {times + 1}th time" if times else " and no fault had killed it"
            detail = f"the engine ended by itself with exit code {code}{after}"
            # One that nobody had killed has crashed, however busy the machine is.
            since_ms = again[0]["at_ms"] if again else self._world.now_ms()
            raise EngineGone(self._excuses.unless_starved("crashed", detail, since_ms))
        if self._ended_ms is None:
            self._ended_ms = self._world.now_ms()
        if self._world.now_ms() - self._ended_ms < RESTART_PAUSES_S[times] * 1000 * self._patience:
            return
        self._tell("restart", exit_code=code, last_lines=engine.tail(5))
        engine.restart()

    def note_start(self) -> bool:
        """When the engine was up again is a figure of its recovery, whoever started it."""
        if (starts := self._world.engine.starts) == self.starts:
            return False
        self.starts, self._ended_ms, self.started_ms = starts, None, self._world.now_ms()
        self._tell("started", times=starts)
        return True

    def _note_errors(self) -> None:
        """The first words of an engine about what was done to it, and when they came."""
        if not any(each.at_ms for each in self._world.fault.reports()):
            return
        for line in self._world.engine.tail(20):
            if ERROR.search(line) and line not in self._errors and len(self._errors) < MOST_ERRORS:
                self._errors.add(line)
                self._tell("error", line=shown(line, LONGEST_LINE))
