"""The shape of a run's results: the usual cell, the whole windows, and the cells that hold less or more."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from harness.audit.left import Left, Offered
from harness.audit.scatter import SHARE, is_low, limit
from harness.util.nearest_rank import of_samples

Flags = NDArray[np.bool_]
EDGE = 0.01  # a window at the edge that is lower by this share may be partial
FEW = 5  # least views per cell: empty cells are not listed, so that small cells do not show the amount
NEAR = 4  # distance in cells to the end of a campaign
CURVE = 400  # points
POISSON = 1 / 3  # how much the median of counts is below their mean


@dataclass(frozen=True)
class Shape:
    """The shape of results with at least one count."""

    left: Left
    offered: Offered

    @cached_property
    def usual(self) -> float:
        """Return the views of the median of all cells that are not low. It needs no split, and a few wrong cells do not
        affect it.
        """
        return float(np.median(self.left.count[~is_low(self.left.count)]))

    @cached_property
    def limit(self) -> float:
        return limit(self.left.count)

    @cached_property
    def low(self) -> Flags:
        return np.asarray(self.left.count < self.usual - self.limit)

    @cached_property
    def high(self) -> Flags:
        return np.asarray(self.left.count > self.usual + self.limit)

    @property
    def share(self) -> float | None:
        """Return the usual cell as a share of the offered load."""
        expected = self.offered.per_cell
        return None if expected is None or expected < FEW else (self.usual + POISSON) / expected

    @property
    def share_limit(self) -> float:
        expected = self.offered.per_cell or 1.0
        return max(SHARE, (0.5 + 1.25 * self.limit / float(np.sqrt(len(self.left.count)))) / expected)

    @cached_property
    def numbers(self) -> NDArray[np.int64]:
        """Return the numbers of the windows that have rows, from the oldest."""
        return np.unique(self.left.window)

    @cached_property
    def column(self) -> NDArray[np.int64]:
        """Return the index of each row's window in `numbers`."""
        return np.searchsorted(self.numbers, self.left.window).astype(np.int64)

    @cached_property
    def totals(self) -> NDArray[np.float64]:
        """Return the views of each window."""
        return np.bincount(self.column, weights=self.left.count, minlength=len(self.numbers)).astype(float)

    @cached_property
    def usual_total(self) -> float:
        return float(np.median(self.totals))

    @property
    def total_limit(self) -> float:
        return max(SHARE * self.usual_total, self.limit * float(np.sqrt(self.offered.campaigns)))

    @cached_property
    def partial(self) -> tuple[int, int]:
        """Return how many of the oldest and of the newest windows are low in the usual campaign."""
        return int(np.median(self._ends[0])), int(np.median(self._ends[1]))

    @cached_property
    def edge(self) -> tuple[int, int]:
        """Return the columns between which windows are whole: those before the first and from the second on may be
        partial."""
        few = self.totals < (1 - EDGE) * self.usual_total
        few |= self.totals < self.usual_total - self.total_limit
        oldest, newest = max(1, _run(few)), max(1, _run(few[::-1]))
        return oldest, max(oldest, len(self.numbers) - newest)

    @cached_property
    def full_windows(self) -> Flags:
        """Select rows of windows that were open from their beginning to their end. A low cell near the end of its
        campaign is left out, because a boundary between campaigns may be off by some cells.
        """
        first, end = self.edge
        order, starts, lengths = self._by_campaign
        place = np.arange(len(order)) - np.repeat(starts, lengths)
        near = np.minimum(place, np.repeat(lengths, lengths) - 1 - place) < NEAR
        inside = np.ones(len(order), dtype=np.bool_)
        inside[order] = ~near
        oldest, newest = (np.repeat(run, lengths) for run in self._ends)
        within = np.zeros(len(order), dtype=np.bool_)
        within[order] = (place >= oldest) & (place < np.repeat(lengths, lengths) - newest)
        inner = np.asarray((self.column >= first) & (self.column < end))
        return inner & within & (inside | ~self.low)

    @cached_property
    def _by_campaign(self) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
        """Rows by campaign and window, the begin of each campaign among them, and its number of rows."""
        order = np.lexsort((self.left.window, self.left.campaign))
        starts = np.flatnonzero(np.diff(self.left.campaign[order], prepend=-1))
        return order, starts, np.diff(np.append(starts, len(order)))

    @cached_property
    def _ends(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """How many of the oldest and of the newest cells of each campaign are low."""
        order, starts, lengths = self._by_campaign
        place, full = np.arange(len(order)), ~self.low[order]
        oldest = np.minimum.reduceat(np.where(full, place, len(order)), starts) - starts
        newest = starts + lengths - 1 - np.maximum.reduceat(np.where(full, place, -1), starts)
        return np.minimum(oldest, lengths), np.minimum(newest, lengths)

    @property
    def windows(self) -> float:
        """Return the number of windows of the usual campaign."""
        return float(np.median(self._by_campaign[2]))

    @cached_property
    def latency_ms(self) -> NDArray[np.int64] | None:
        """Return the latency of whole windows in the original's definition: the last update minus the window's end."""
        if self.left.delay_ms is None:
            return None
        rows = self.full_windows if self.left.is_split and self.full_windows.any() else ~self.low
        delays = self.left.delay_ms[rows]
        return delays - self.offered.window_ms if len(delays) else None

    def percentile_ms(self, percent: float) -> float | None:
        return None if self.latency_ms is None else of_samples(self.latency_ms, (percent / 100,))[0]

    @property
    def curve(self) -> tuple[tuple[int, float], ...]:
        """Return for each window the seconds since the oldest one, and its views as a share of the offered load."""
        if not self.left.is_split or self.usual_total <= 0:
            return ()
        every = -(-len(self.numbers) // CURVE)
        seconds = (self.numbers - self.numbers[0]) * (self.offered.window_ms / 1000)
        usual = self.usual_total if self.share is None else self.usual_total / self.share
        return tuple((int(at), float(y)) for at, y in zip(seconds[::every], self.totals[::every] / usual, strict=True))


def _run(flags: Flags) -> int:
    """The number of leading flags that are set."""
    return len(flags) if flags.all() else int(np.argmin(flags))
