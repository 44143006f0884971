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
