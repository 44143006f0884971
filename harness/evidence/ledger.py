"""Numbers per cell, and the comparison of two sets of them. Pure, and independent of engines and stores.

A cell is a code (workloads/cells.py). A `Ledger` holds one number per cell and omits zeros, so that equal ledgers
compare equal however they were built. An `Expectation` holds [must, may] per cell.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from harness.evidence.grouping import spans
from workloads.base import Columns, Ints, Totals


def seal_of(planned: Columns) -> str:
    """Return the digest of the planned expectation: its cells and their values, in order."""
    columns = [np.asarray(column) for column in planned.values()]
    order, digest = np.lexsort(columns[::-1]), hashlib.sha256()
    for some in spans(len(order)):
        rows = zip(*(column[order[some]].tolist() for column in columns), strict=True)
        digest.update("".join(",".join(map(str, row)) + "\n" for row in rows).encode())
    return digest.hexdigest()


class Ledger(Mapping[int, int]):
    """An immutable multiset of counted events, added and subtracted cell by cell."""

    def __init__(self, counts: Mapping[int, int] | Iterable[tuple[int, int]] = ()) -> None:
        pairs = counts.items() if isinstance(counts, Mapping) else counts
        self._counts = {cell: count for cell, count in pairs if count}

    @classmethod
    def of(cls, totals: Totals) -> Ledger:
        return cls(zip(totals.cell.tolist(), totals.value.tolist(), strict=True))

    def __getitem__(self, cell: int) -> int:
        return self._counts[cell]

    def __iter__(self) -> Iterator[int]:
        return iter(self._counts)

    def __len__(self) -> int:
        return len(self._counts)

    @property
    def cells(self) -> Ints:
        """The codes of the cells, in no order."""
        return np.fromiter(self._counts, dtype=np.int64, count=len(self._counts))

    def equals(self, other: Ledger) -> bool:
        """Compare the dicts directly: == of two mappings takes seconds for millions of cells."""
        return self._counts == other._counts

    def count(self, cell: int) -> int:
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

    cell: int
    must: int
    may: int
    seen: int

    @property
    def surplus(self) -> int:
        return self.seen - (self.may if self.seen > self.may else self.must)


@dataclass(frozen=True)
class Expectation:
    """The interval that each cell must be in: at least `must`, at most `may`."""

    must: Ledger
    may: Ledger

    @property
    def slack(self) -> int:
        """How many events could be missing without detection. Zero: the verdict is exact to the single event."""
        return self.may.total - self.must.total

    def differences(self, seen: Ledger) -> list[Difference]:
        """Return every cell outside its interval, unexpected cells included, in order of their codes."""
        must, may = self.must, self.may
        if seen.equals(must) and seen.equals(may):  # as nearly always
            return []
        unlike = [cell for cell in {*may, *seen} if not self._holds(cell, seen.count(cell))]
        return [Difference(cell, must.count(cell), may.count(cell), seen.count(cell)) for cell in sorted(unlike)]

    def _holds(self, cell: int, seen: int) -> bool:
        """Sort the bounds first: a sum that is not required may be negative."""
        low, high = sorted((self.must.count(cell), self.may.count(cell)))
        return low <= seen <= high
