"""Find when a reader saw which count, for the samples of many cells at once. Pure arrays.

Cells are numbered from 0. Times are in microseconds; infinite means never, as far as polls show.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.evidence.grouping import by_groups

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Samples:
    """Observed changes of counts, one row each, in any order."""

    cell: Ints
    at_us: Ints
    count: Ints


class Visibility:
    """The observed counts of each cell over time."""

    def __init__(self, samples: Samples, cells: int) -> None:
        order = np.lexsort((samples.at_us, samples.cell))
        self._cell, self._at_us = samples.cell[order], samples.at_us[order].astype(np.float64)
        self._count = np.maximum(samples.count[order], 0)
        bounds = np.searchsorted(self._cell, np.arange(cells + 1))
        self._begin, self._end = bounds[:-1], bounds[1:]
        self._width = int(self._count.max(initial=0)) + 2
        # The smallest count from each sample on. The keys of later cells are larger, so one pass serves all cells.
        keys = self._cell * self._width + self._count
        self._lasting = np.minimum.accumulate(keys[::-1])[::-1]

    def since_us(self, cell: Ints, count: Ints) -> Floats:
        """Return the first sample after which a cell never falls below a count again."""
        wanted = cell * self._width + np.minimum(count, self._width - 1)
        return self._moment(np.searchsorted(self._lasting, wanted, side="left"), self._end[cell])

    def first_us(self, cell: Ints) -> Floats:
        """Return the first sample with a value of a cell."""
        nonzero = np.flatnonzero(self._count > 0)
        place = np.searchsorted(nonzero, self._begin[cell])
        return self._moment(np.append(nonzero, len(self._count))[place], self._end[cell])

    def final_us(self, cell: Ints, value: Ints) -> Floats:
        """Return the sample with a cell's final value: its last change, if that is a change to this value."""
        last = self._end[cell] - 1
        held = (self._end[cell] > self._begin[cell]) & (np.append(self._count, 0)[last] == value)
        return np.where(held, np.append(self._at_us, np.inf)[last], np.inf)

    def dipped(self) -> Mask:
        """Select cells whose count decreased at some time."""
        result = np.zeros(len(self._begin), dtype=np.bool_)
        back = (np.diff(self._count) < 0) & (np.diff(self._cell) == 0)
        result[self._cell[1:][back]] = True
        return result

    def _moment(self, place: NDArray[np.intp], end: NDArray[np.intp]) -> Floats:
        return np.where(place < end, np.append(self._at_us, np.inf)[place], np.inf)


def ranks(cell: Ints, time_us: Ints) -> tuple[NDArray[np.intp], Ints]:
    """Return the rows ordered by cell and time, and the rank of each in its cell, from 1."""
    order = by_groups(cell, np.argsort(time_us, kind="stable"))
    count = np.bincount(cell)
    return order, np.arange(len(cell)) - np.repeat(np.cumsum(count) - count, count) + 1


def overtaken_us(cell: Ints, time_us: Ints, turn: Ints) -> Ints:
    """Return by how much each event was overtaken: how much later the latest earlier-turn event of its cell was due.

    Zero for all: they became visible in the order of their due times.
    """
    order = by_groups(cell, np.lexsort((time_us, turn)))
    since_us = time_us - time_us.min(initial=0)
    width = int(since_us.max(initial=0)) + 1
    keys = (cell * width + since_us)[order]
    result = np.empty(len(cell), dtype=np.int64)
    result[order] = np.maximum.accumulate(keys) - keys
    return result
