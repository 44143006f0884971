"""The ways of measuring latency, all from the same evidence. Pure arrays.

A latency ends at the poll that showed a result, and begins when an event was due (corrected) or sent (uncorrected).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.evidence.grouping import some_groups
from harness.measuring.latency.evidence import WRONG, Cells, Events
from harness.measuring.latency.visibility import Floats, Ints, Mask, Visibility, overtaken_us, ranks

PROBES, RANK_MATCHED, FINAL, FIRST, YAHOO = "probes", "rank-matched", "final value", "first seen", "yahoo"


@dataclass(frozen=True)
class Raw:
    """The latencies of one way; infinite: never seen."""

    due_us: Ints
    corrected_ms: Floats
    uncorrected_ms: Floats | None

    def only(self, mask: Mask) -> Raw:
        uncorrected_ms = None if self.uncorrected_ms is None else self.uncorrected_ms[mask]
        return Raw(self.due_us[mask], self.corrected_ms[mask], uncorrected_ms)


class Ways:
    """All ways for one run.

    Cells with a sentinel record or a wrong count have no latency. Events due before the load start affect ranks, but
    have no latency.
    """

    def __init__(self, events: Events, cells: Cells, seen: Visibility, *, probes_from: int, epoch_us: int) -> None:
        self._events, self._cells, self._seen, self._epoch_us = events, cells, seen, epoch_us
        self._bounds = events.bounds(len(cells.events))
        self._measured = ~cells.marked & (cells.final != WRONG)
        # If some events may have been dropped, it is unknown which ones count.
        self._whole = cells.counts & (cells.final == cells.events)
        self._probes = (cells.key >= probes_from) & (cells.events == 1)

    @cached_property
    def probes(self) -> Raw:
        """Latency of cells of probe keys with one event: the cell appears when the event does."""
        cell = np.flatnonzero(self._probes & self._whole & self._measured)
        rows = self._bounds[cell]
        return self._raw(self._seen.since_us(cell, np.ones_like(cell)), *(times[rows] for times in self._times()))

    @cached_property
    def rank_matched(self) -> Raw:
        """Latency by rank: compare in each cell the k-th visible count with the k-th due and the k-th sent event."""
        events, end = int(self._bounds[-1]), 0
        due_us, corrected_ms, uncorrected_ms = np.empty(events, dtype=np.int64), np.empty(events), np.empty(events)
        for cells in some_groups(self._bounds):
            part = self._ranked(cells)
            rows = slice(end, end := end + len(part.due_us))
            due_us[rows], corrected_ms[rows], uncorrected_ms[rows] = part.due_us, part.corrected_ms, part.uncorrected_ms
        return Raw(due_us[:end], corrected_ms[:end], uncorrected_ms[:end])

    def _ranked(self, cells: range) -> Raw:
        own = self._rows_of(cells)
        rows = own.start + np.flatnonzero(self._whole[self._events.cell[own]])
        cell, mark = self._events.cell[rows].astype(np.int64), self._events.mark[rows]
        due_us, sent_us = self._events.due_us[rows], self._events.sent_us[rows]
        by_due, rank = ranks(cell - cells.start, due_us)
        by_sent, _ = ranks(cell - cells.start, sent_us)
        ours = ~mark[by_due]
        visible_us = self._seen.since_us(cell[by_due], rank)
        return self._raw(visible_us[ours], due_us[by_due][ours], sent_us[by_sent][ours])

    def final_value(self) -> Raw:
        """Measure from a cell's last event to its right final count.

        A maximum is mostly reached before the last event of its cell, and so is a count with unknown dropped events:
        those have no such latency.
        """
        cell = np.flatnonzero(self._measured & (self._whole | (self._cells.events == 1)))
        due_us, sent_us = (self._of_cells(np.maximum, times)[cell] for times in self._times())
        return self._raw(self._seen.final_us(cell, self._cells.final[cell]), due_us, sent_us)

    def first_seen(self) -> Raw:
        """Measure from a cell's first event until any value of the cell is visible."""
        cell = np.flatnonzero(self._measured & (self._cells.final > 0))
        due_us, sent_us = (self._of_cells(np.minimum, times)[cell] for times in self._times())
        return self._raw(self._seen.first_us(cell), due_us, sent_us)

    def never_final(self) -> Mask:
        """Select cells of the load, without sentinel records, that are wrong or were not seen to become right."""
        cell = np.flatnonzero(self._of_load())
        return ~np.isfinite(self._seen.final_us(cell, self._cells.final[cell]))

    def dipped(self) -> Mask:
        return self._seen.dipped()[self._of_load()]

    def overtaken_ms(self) -> float | None:
        """Return the most by which events of a cell were overtaken on their way to the engine; None: unknown."""
        if self._events.turn is None:
            return None
        most_us = [self._overtaken_us(self._events.turn, cells) for cells in some_groups(self._bounds)]
        return float(max(most_us, default=0)) / 1000

    def _overtaken_us(self, turn: NDArray[np.integer[Any]], cells: range) -> int:
        own = self._rows_of(cells)
        rows = own.start + np.flatnonzero(~self._events.mark[own])
        cell = self._events.cell[rows].astype(np.int64) - cells.start
        return int(overtaken_us(cell, self._events.due_us[rows], turn[rows]).max(initial=0))

    def _rows_of(self, cells: range) -> slice:
        return slice(int(self._bounds[cells.start]), int(self._bounds[cells.stop]))

    def _of_load(self) -> Mask:
        return ~self._cells.marked & (self._of_cells(np.maximum, self._events.due_us) >= self._epoch_us)

    def _times(self) -> tuple[Ints, Ints]:
        return self._events.due_us, self._events.sent_us

    def _of_cells(self, choose: np.ufunc, times_us: Ints) -> Ints:
        """Return the earliest or latest time of each cell; each has an event."""
        return np.asarray(choose.reduceat(times_us, self._bounds[:-1]))

    def _raw(self, visible_us: Floats, due_us: Ints, sent_us: Ints) -> Raw:
        measured = due_us >= self._epoch_us
        corrected_ms, uncorrected_ms = ((visible_us - begin_us)[measured] / 1000 for begin_us in (due_us, sent_us))
        return Raw(due_us[measured], corrected_ms, uncorrected_ms)
