"""Counts per cell, and what may be said of two sets of them. Pure; knows no engine and no store.

A cell is (campaign index, window start in absolute ms). A `Ledger` holds one number per cell and forgets zeros, so that
equal ledgers compare equal whatever way they were put together. An `Expectation` holds [must, may] per cell.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from workloads.base import Columns


class Cell(NamedTuple):
    campaign: int
    window_ms: int


# Many cells as one column of numbers: the campaign above, the start of the window below.
_WINDOW_BITS = 43
LATEST_WINDOW_MS = (1 << _WINDOW_BITS) - 1
_WIDEST = 1 << 40  # windows from the first to the last one, that are counted without sorting them first


def cell_codes(campaign: NDArray[np.integer[Any]], window_ms: NDArray[np.int64]) -> NDArray[np.int64]:
    """All windows that can't be the harness' own, before 1970 or centuries away, share the last code of a campaign."""
    inside = (window_ms >= 0) & (window_ms < LATEST_WINDOW_MS)
    return np.asarray(campaign.astype(np.int64) << _WINDOW_BITS | np.where(inside, window_ms, LATEST_WINDOW_MS))


def cell_code(campaign: int, window_ms: int) -> int:
    inside = 0 <= window_ms < LATEST_WINDOW_MS
    return campaign << _WINDOW_BITS | (window_ms if inside else LATEST_WINDOW_MS)


def cell_of(code: int) -> Cell:
    return Cell(code >> _WINDOW_BITS, code & LATEST_WINDOW_MS)


def seal_of(planned: Columns) -> str:
    """The digest of what is expected by the plan: of its cells and their values, in order."""
    rows = sorted(zip(*(column.tolist() for column in planned.values()), strict=True))
    return hashlib.sha256("".join(",".join(map(str, row)) + "\n" for row in rows).encode()).hexdigest()


class Ledger(Mapping[Cell, int]):
    """An immutable multiset of counted events, added and subtracted cell by cell."""

    def __init__(self, counts: Mapping[Cell, int] | Iterable[tuple[Cell, int]] = ()) -> None:
        pairs = counts.items() if isinstance(counts, Mapping) else counts
        self._counts = {cell if type(cell) is Cell else Cell(*cell): count for cell, count in pairs if count}

    @classmethod
    def of_events(cls, campaigns: NDArray[np.int64], times_ms: NDArray[np.int64], window_ms: int) -> Ledger:
        """Count events, given as two columns, into tumbling windows."""
        if not len(campaigns):
            return cls()
        windows = np.floor_divide(times_ms, window_ms)
        low = int(windows.min())
        width = int(windows.max()) - low + 1
        if width > _WIDEST:  # foreign records may be of any time
            starts, place = np.unique(windows, return_inverse=True)
            dense = cls.of_events(campaigns, place.astype(np.int64), 1)
            return cls((Cell(c, int(starts[at]) * window_ms), count) for (c, at), count in dense.items())
        codes, counts = np.unique(campaigns.astype(np.int64) * width + (windows - low), return_counts=True)
        return cls(
            (Cell(int(code) // width, (int(code) % width + low) * window_ms), int(count))
            for code, count in zip(codes, counts, strict=True)
        )

    def __getitem__(self, cell: Cell) -> int:
        return self._counts[cell]

    def __iter__(self) -> Iterator[Cell]:
        return iter(self._counts)

    def __len__(self) -> int:
        return len(self._counts)

    def count(self, cell: Cell) -> int:
        return self._counts.get(cell, 0)

    def __add__(self, other: Ledger) -> Ledger:
        return self._merge(other, 1)

    def __sub__(self, other: Ledger) -> Ledger:
        return self._merge(other, -1)

    def _merge(self, other: Ledger, sign: int) -> Ledger:
        merged = dict(self._counts)
        for cell, count in other.items():
            merged[cell] = merged.get(cell, 0) + sign * count
        return Ledger(merged)

    @property
    def total(self) -> int:
        return sum(self._counts.values())

    def __repr__(self) -> str:
        return f"Ledger({len(self)} cells, {self.total} events)"


@dataclass(frozen=True)
class Difference:
    """One cell whose count lies outside [must, may]. `surplus` is positive for too many, negative for too few."""

    cell: Cell
    must: int
    may: int
    seen: int

    @property
    def surplus(self) -> int:
        return self.seen - (self.may if self.seen > self.may else self.must)


@dataclass(frozen=True)
class Expectation:
    """What each cell has to hold: at least `must`, at most `may`."""

    must: Ledger
    may: Ledger

    @property
    def slack(self) -> int:
        """How many events could be missing unnoticed. Zero: the verdict is to the single event."""
        return self.may.total - self.must.total

    def differences(self, seen: Ledger) -> list[Difference]:
        """Every cell outside its interval, also those that nobody expects, in order of window and campaign."""
        must, may = self.must, self.may
        unlike = [cell for cell in {*may, *seen} if not must.count(cell) <= seen.count(cell) <= may.count(cell)]
        unlike.sort(key=lambda cell: (cell.window_ms, cell.campaign))
        return [Difference(cell, must.count(cell), may.count(cell), seen.count(cell)) for cell in unlike]
