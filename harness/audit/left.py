"""What a run left: its counts, cell by cell, as far as its files tell which cell is which. Values only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
UNTOLD = -1  # as the window of a row: the file does not tell


@dataclass(frozen=True)
class Left:
    """A row per cell. Windows are numbered from the oldest one."""

    place: str
    campaign: Ints
    window: Ints
    count: Ints
    delay_ms: Ints | None = None  # time_updated less the start of the window
    times_listed: Ints | None = None  # how often in a row the file has this very cell; None: each once
    faults: tuple[str, ...] = ()  # what can't be read, or stands where nothing should
    unsplit: str = ""  # why nobody knows which row is which cell
    doubt: str = ""  # why these rows may not be what was written
    orphans: int = 0  # events in hashes that no campaign refers to
    digest: str = ""  # of the file of counts; equal ones are the same results twice

    @property
    def is_split(self) -> bool:
        """Whether it is known which count belongs to which campaign and window."""
        return bool(len(self.window) and (self.window >= 0).all())


@dataclass(frozen=True)
class Offered:
    """What is known of the load, and from where. None: not known."""

    total_per_s: float | None = None  # of all producers
    source: str = ""
    producers: int | None = None
    duration_s: float | None = None
    campaigns: int = 100
    window_ms: int = 10_000
    published_p99_ms: float | None = None

    @property
    def per_cell(self) -> float | None:
        """Views in one cell of a whole window: a third of the events are views."""
        if self.total_per_s is None:
            return None
        return self.total_per_s * self.window_ms / 1000 / 3 / self.campaigns


@dataclass(frozen=True)
class Cells:
    """Rows by the names of their campaign and window, as a CSV file or a Redis has them."""

    campaign: list[str] = field(default_factory=list)
    window_ms: list[int] = field(default_factory=list)
    count: list[int] = field(default_factory=list)
    updated_ms: list[int] = field(default_factory=list)

    def add(self, campaign: str, window_ms: int, count: int, updated_ms: int | None) -> None:
        """OverflowError: no time and no count of this world."""
        for number in (window_ms, count, updated_ms or 0):
            if not -(2**62) < number < 2**62:
                raise OverflowError(number)
        self.campaign.append(campaign)
        self.window_ms.append(window_ms)
        self.count.append(count)
        if updated_ms is not None:
            self.updated_ms.append(updated_ms)

    def left(self, place: str, width_ms: int, faults: Sequence[str], orphans: int = 0, digest: str = "") -> Left:
        """Windows are numbered by their time, so that one that nobody has is a gap."""
        starts = np.array(self.window_ms, dtype=np.int64)
        _, campaign = np.unique(np.array(self.campaign, dtype=str), return_inverse=True)
        window = (starts - starts.min()) // width_ms if len(starts) else starts
        told = len(self.updated_ms) == len(starts) > 0
        delay = np.array(self.updated_ms, dtype=np.int64) - starts if told else None
        count = np.array(self.count, dtype=np.int64)
        return Left(
            place, campaign.astype(np.int64), window, count, delay, faults=tuple(faults), orphans=orphans, digest=digest
        )


def unreadable(place: str, why: str) -> Left:
    nothing = np.zeros(0, dtype=np.int64)
    return Left(place, nothing, nothing, nothing, doubt=why)
