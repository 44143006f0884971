"""Results that are about to vanish."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Expiring:
    """Keys that have a time to live when the results are read."""

    keys: int = 0
    soonest_ms: int = 0  # from then on
    example: str = ""  # the key that goes first
    stopped: bool = False  # seen when the engine had been stopped, and not before
