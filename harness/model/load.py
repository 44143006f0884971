"""How far the fleet is, and whether it kept its schedule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class LoadStatus:
    """How far the fleet is, in records."""

    intended: int
    sent: int
    acknowledged: int
    finished: bool


@dataclass(frozen=True)
class Certificate:
    """Did the generator keep its schedule? Apart from the verdict: sending late does not make a count wrong."""

    valid: bool
    reasons: tuple[str, ...]
    slices: int
    intended: int
    sent: int
    acknowledged: int
    lag_ms: Mapping[str, float]  # p50, p99, p99.9, max over slices
    budget_ms: float
