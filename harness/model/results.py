"""When results last changed, and when they will expire."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Change(NamedTuple):
    """The interval in which the results last changed.

    A poll takes time: one that began before a moment may still read what was written after that moment.
    """

    at_ms: int  # the end of the poll that read the newest change
    since_ms: int  # the start of the poll before it: the change is newer than this


@dataclass(frozen=True)
class Expiring:
    """Keys that had a time to live when the results were read."""

    keys: int = 0
    soonest_ms: int = 0  # time until the first one expires
    example: str = ""  # the key that expires first
    stopped: bool = False  # seen only after the engine was stopped
