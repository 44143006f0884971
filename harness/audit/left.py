"""The results of a run: its counts by cell, as far as its files identify the cells. Values only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from harness.util.texts import many

Ints = NDArray[np.int64]
YEAR_10000_MS = 253_402_300_800_000
YEAR_MS = 366 * 86_400_000
MOST_VIEWS = 10**15  # most views of one cell
UNTOLD = -1  # as the window of a row: unknown


@dataclass(frozen=True)
class Left:
    """The results of one folder, file or Redis, with a row per cell. Windows are numbered from the oldest one."""

    place: str
    campaign: Ints
    window: Ints
    count: Ints
    delay_ms: Ints | None = None  # time_updated minus the start of the window
    times_listed: Ints | None = None  # how often the file repeats this cell; None: each occurs once
    faults: tuple[str, ...] = ()  # unreadable or unexpected content
    unsplit: str = ""  # why the cell of each row is unknown
    ambiguous: str = ""  # cells with more than one count
    doubt: str = ""  # why these rows may differ from what was written
    orphans: int = 0  # events in hashes without a reference from a campaign
    digest: str = ""  # digest of the file of counts: equal ones are copies of the same results

    @property
    def is_split(self) -> bool:
        """Return whether the campaign and the window of each count are known."""
        return bool(len(self.window) and (self.window >= 0).all())


@dataclass(frozen=True)
class Offered:
    """The known load and its source. None: unknown."""

    total_per_s: float | None = None  # of all producers
    source: str = ""
    producers: int | None = None
    duration_s: float | None = None
    campaigns: int = 100
    window_ms: int = 10_000
    published_p99_ms: float | None = None

    @property
    def per_cell(self) -> float | None:
        """Return the expected views in one cell of a whole window: a third of the events are views."""
        if self.total_per_s is None:
            return None
        return self.total_per_s * self.window_ms / 1000 / 3 / self.campaigns


@dataclass(frozen=True)
class Cells:
    """Rows with the names of their campaign and window, as in a CSV file or a Redis."""

    campaign: list[str] = field(default_factory=list)
    window_ms: list[int] = field(default_factory=list)
    count: list[int] = field(default_factory=list)
    updated_ms: list[int] = field(default_factory=list)

    def add(self, campaign: str, window_ms: int, count: int, updated_ms: int | None) -> None:
        """Add a row. Raises OverflowError for a time after the year 10,000 or an impossible count."""
        for number, most in ((window_ms, YEAR_10000_MS), (count, MOST_VIEWS), (updated_ms or 0, YEAR_10000_MS)):
            if abs(number) > most:
                raise OverflowError(number)
        self.campaign.append(campaign)
        self.window_ms.append(window_ms)
        self.count.append(count)
        if updated_ms is not None:
            self.updated_ms.append(updated_ms)

    def left(self, place: str, width_ms: int, faults: Sequence[str], orphans: int = 0, digest: str = "") -> Left:
        """Number the windows by their time, so that a window without rows is a gap."""
        starts, count = np.array(self.window_ms, dtype=np.int64), np.array(self.count, dtype=np.int64)
        told = len(self.updated_ms) == len(starts) > 0
        delay = np.array(self.updated_ms, dtype=np.int64) - starts if told else None
        _, campaign = np.unique(np.array(self.campaign, dtype=str), return_inverse=True)
        near = np.abs(starts - np.median(starts)) < YEAR_MS if len(starts) else np.zeros(0, dtype=np.bool_)
        far = [self._named(row, "is more than a year from the others") for row in np.flatnonzero(~near).tolist()]
        window = (starts - starts[near].min()) // width_ms if near.any() else starts
        kept, times, ambiguous = self._once(campaign, window, np.flatnonzero(near))
        return Left(
            place,
            campaign[kept].astype(np.int64),
            window[kept],
            count[kept],
            None if delay is None else delay[kept],
            times_listed=times,
            faults=(*faults, *far),
            ambiguous=ambiguous,
            orphans=orphans,
            digest=digest,
        )

    def _once(self, campaign: Ints, window: Ints, rows: Ints) -> tuple[Ints, Ints | None, str]:
        """Return the first row of each cell, how often each occurs, and a sentence about cells whose counts differ."""
        cells = np.column_stack((campaign[rows], window[rows]))
        _, first, cell, times = np.unique(cells, axis=0, return_index=True, return_inverse=True, return_counts=True)
        count = np.array(self.count, dtype=np.int64)[rows]
        differ = np.flatnonzero(count != count[first][cell.ravel()])
        order = np.argsort(first)
        kept, listed = rows[first[order]], times[order].astype(np.int64)
        if not len(differ):
            return kept, listed if len(rows) > len(kept) else None, ""
        cells_that_differ = len(np.unique(cell.ravel()[differ]))
        one, other = count[first][cell.ravel()][differ[0]], count[differ[0]]
        example = self._named(int(rows[differ[0]]), f"has {one:,} and {other:,}")
        return kept, listed, f"{many(cells_that_differ, 'cell has', 'cells have')} different counts: {example}"

    def _named(self, row: int, what: str) -> str:
        return f"campaign {self.campaign[row][:60]}, window {self.window_ms[row]} {what}"


def unreadable(place: str, why: str) -> Left:
    nothing = np.zeros(0, dtype=np.int64)
    return Left(place, nothing, nothing, nothing, doubt=why)
