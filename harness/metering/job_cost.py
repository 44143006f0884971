"""The CPU time and memory that a job of Spark uses, with the processes of its own cluster."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from harness.metering.cpu_books import Books, Usage
from harness.metering.process_sampling import ENGINE, WORKERS, Processes

PARTS = (ENGINE, WORKERS)


@dataclass(frozen=True)
class Used:
    """The CPU time and memory that Spark, or this process, has used."""

    wall_s: float  # with the start of Spark
    cpu_s: float
    peak_rss_bytes: int


class JobCost:
    """Return the CPU time and memory that a job has used so far."""

    def __init__(self) -> None:
        self._books, self._pids = Books(), list[int]()
        self._processes = Processes(lambda: {ENGINE: self._pids})
        self._used: Mapping[str, Usage] = {}
        self._peak, self._began_s, self._took_s = 0, time.monotonic(), 0.0

    def take(self, pids: list[int]) -> None:
        self._pids, self._took_s = pids, time.monotonic() - self._began_s
        self._used = self._books.take(self._processes.sample())
        self._peak = max(self._peak, sum(self._part(part).rss_bytes for part in PARTS))

    def used(self) -> Used:
        return Used(self._took_s, sum(self._part(part).cpu.total_s for part in PARTS), self._peak)

    def _part(self, part: str) -> Usage:
        return self._used.get(part, Usage())
