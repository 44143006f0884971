"""Results that will expire."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Expiring:
    """Keys that had a time to live when the results were read."""

    keys: int = 0
    soonest_ms: int = 0  # time until the first one expires
    example: str = ""  # the key that expires first
    stopped: bool = False  # seen only after the engine was stopped
