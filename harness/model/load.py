"""The progress of the fleet, and the check that it kept its schedule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class LoadStatus:
    """The fleet's progress in records."""

    intended: int
    sent: int
    acknowledged: int
    finished: bool


@dataclass(frozen=True)
class LoadWorker:
    """One process of a load that has several."""

    host: str
    servers: tuple[int, ...]
    sent: int
    clock_error_ms: float | None  # of the run's clock there, at most; None: unknown


@dataclass(frozen=True)
class Certificate:
    """The load check: whether the generator kept its schedule.

    It is separate from the verdict, because sending late makes no count wrong.
    """

    valid: bool
    reasons: tuple[str, ...]
    slices: int
    intended: int
    sent: int
    acknowledged: int
    lag_ms: Mapping[str, float]  # p50, p99, p99.9, max over slices
    budget_ms: float
    workers: tuple[LoadWorker, ...] = ()  # none: one process beside the harness, by the same clock

    @property
    def clock_error_ms(self) -> float:
        """Return by how much a worker may have sent early or late because of its clock."""
        return max((worker.clock_error_ms or 0.0 for worker in self.workers), default=0.0)
