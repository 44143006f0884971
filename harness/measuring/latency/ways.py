"""The ways of measuring latency, all from the same evidence. Pure arrays.

A latency ends at the poll that showed a result, and begins when an event was due (corrected) or sent (uncorrected).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from harness.evidence.long_rows import Ascending, Rows
from harness.measuring.latency.evidence import WRONG, Cells, Events, EventsByCell
from harness.measuring.latency.visibility import Floats, Ints, Mask, Visibility, overtaken_us, ranks

PROBES, RANK_MATCHED, FINAL, FIRST, YAHOO = "probes", "rank-matched", "final value", "first seen", "yahoo"
_RAW = np.dtype([("due_us", np.int64), ("corrected_ms", np.float64), ("uncorrected_ms", np.float64)])


@dataclass(frozen=True)
class Raw:
    """The latencies of one way; infinite: never seen."""

    due_us: Ints
    corrected_ms: Floats
    uncorrected_ms: Floats | None

    def only(self, mask: Mask) -> Raw:
        uncorrected_ms = None if self.uncorrected_ms is None else self.uncorrected_ms[mask]
        return Raw(self.due_us[mask], self.corrected_ms[mask], uncorrected_ms)

    def __len__(self) -> int:
        return len(self.due_us)


class Raws:
    """All latencies of one way, in parts, which are read anew in each pass."""

    def __init__(self, parts: Callable[[], Iterable[Raw]], folder: Path) -> None:
        """`folder` holds what of them does not fit into memory."""
        self._parts, self.folder = parts, folder

    @classmethod
    def of(cls, raw: Raw, folder: Path) -> Raws:
        return cls(lambda: [raw], folder)

    def __iter__(self) -> Iterator[Raw]:
        return iter(self._parts())

    @cached_property
    def count(self) -> int:
        return sum(map(len, self))

    @property
    def whole(self) -> Raw:
        """All of them at once, of a way that is known to be small, or of a short run."""
        no_event = Raw(np.zeros(0, np.int64), np.zeros(0), np.zeros(0))
        due_us, corrected_ms, uncorrected_ms = zip(
            *((part.due_us, part.corrected_ms, part.uncorrected_ms) for part in (no_event, *self)), strict=True
        )
        none = any(each is None for each in uncorrected_ms)
        return Raw(
            np.concatenate(due_us), np.concatenate(corrected_ms), None if none else np.concatenate(uncorrected_ms)
        )

    def only(self, choose: Callable[[Ints], Mask]) -> Raws:
        """Select those of events by their due times."""
        return Raws(lambda: (part.only(choose(part.due_us)) for part in self), self.folder)

    def ascending(self, column: Callable[[Raw], Floats]) -> tuple[Ascending, int]:
        """Return a column in ascending order, and count the events that were never seen."""
        seen = Ascending((ms[np.isfinite(ms)] for ms in map(column, self)), self.folder)
        return seen, self.count - len(seen)


@dataclass(frozen=True)
class _Times:
    """The first and last due and send times of each cell."""

    first_due_us: Ints
    first_sent_us: Ints
    last_due_us: Ints
    last_sent_us: Ints

    @classmethod
    def of_cells(cls, cells: int) -> _Times:
        return cls(*np.zeros((4, cells), dtype=np.int64))

    def put(self, cells: range, events: Events) -> None:
        """Each cell has an event."""
        begins, own = np.searchsorted(events.cell, np.asarray(cells)), slice(cells.start, cells.stop)
        for choose, due_us, sent_us in (
            (np.minimum, self.first_due_us, self.first_sent_us),
            (np.maximum, self.last_due_us, self.last_sent_us),
        ):
            due_us[own] = choose.reduceat(events.due_us, begins)
            sent_us[own] = choose.reduceat(events.sent_us, begins)


class Ways:
    """All ways for one run.

    Cells with a sentinel record or a wrong count have no latency. Events due before the load start affect ranks, but
    have no latency.
    """

    def __init__(
        self, events: EventsByCell, cells: Cells, seen: Visibility, *, probes_from: int, epoch_us: int
    ) -> None:
        self._events, self._cells, self._seen, self._epoch_us = events, cells, seen, epoch_us
        self._measured = ~cells.marked & (cells.final != WRONG)
        # If some events may have been dropped, it is unknown which ones count.
        self._whole = cells.counts & (cells.final == cells.events)
        self._probes = (cells.key >= probes_from) & (cells.events == 1)
        self._times = _Times.of_cells(len(cells.events))
        self._ranks = Rows(_RAW, events.folder)
        self._overtaken_us = [0]
        self._go_through()

    def _go_through(self) -> None:
        """Go through all events once."""
        with ThreadPoolExecutor(1) as beside:  # numpy sorts without Python's lock, and a sort takes long
            for cells, events in self._events.parts():
                overtaken = beside.submit(_overtaken_us, cells, events)
                self._times.put(cells, events)
                self._add_ranks(cells, events)
                self._overtaken_us.append(overtaken.result())

    @cached_property
    def probes(self) -> Raws:
        """Latency of cells of probe keys with one event: the cell appears when the event does."""
        cell, times = np.flatnonzero(self._probes & self._whole & self._measured), self._times
        since_us = self._seen.since_us(cell, np.ones_like(cell))
        return self._raws(self._raw(since_us, times.first_due_us[cell], times.first_sent_us[cell]))

    @cached_property
    def rank_matched(self) -> Raws:
        """Latency by rank: compare in each cell the k-th visible count with the k-th due and the k-th sent event."""
        names = _RAW.names or ()
        return Raws(lambda: (Raw(*(part[name] for name in names)) for part in self._ranks.parts()), self.folder)

    @property
    def of_events(self) -> Raws:
        """Latency of each event: by rank, or, where no value counts events, from each event that has a cell of its own
        to the cell's value.
        """
        return self.rank_matched if self.rank_matched.count else self.final_value()

    @property
    def folder(self) -> Path:
        return self._events.folder

    def _add_ranks(self, cells: range, events: Events) -> None:
        own = np.flatnonzero(self._whole[events.cell])
        cell, mark = events.cell[own].astype(np.int64), events.mark[own]
        due_us, sent_us = events.due_us[own], events.sent_us[own]
        by_due, rank = ranks(cell - cells.start, due_us)
        by_sent, _ = ranks(cell - cells.start, sent_us)
        ours = ~mark[by_due]
        visible_us = self._seen.since_us(cell[by_due], rank)
        found = self._raw(visible_us[ours], due_us[by_due][ours], sent_us[by_sent][ours])
        rows = np.empty(len(found), dtype=_RAW)
        for name in _RAW.names or ():
            rows[name] = getattr(found, name)
        self._ranks.add(rows)

    def final_value(self) -> Raws:
        """Measure from a cell's last event to its right final count.

        A maximum is mostly reached before the last event of its cell, and so is a count with unknown dropped events:
        those have no such latency.
        """
        cell, times = np.flatnonzero(self._measured & (self._whole | (self._cells.events == 1))), self._times
        final_us = self._seen.final_us(cell, self._cells.final[cell])
        return self._raws(self._raw(final_us, times.last_due_us[cell], times.last_sent_us[cell]))

    def first_seen(self) -> Raws:
        """Measure from a cell's first event until any value of the cell is visible."""
        cell, times = np.flatnonzero(self._measured & (self._cells.final > 0)), self._times
        return self._raws(self._raw(self._seen.first_us(cell), times.first_due_us[cell], times.first_sent_us[cell]))

    def never_final(self) -> Mask:
        """Select cells of the load, without sentinel records, that are wrong or were not seen to become right."""
        cell = np.flatnonzero(self._of_load())
        return ~np.isfinite(self._seen.final_us(cell, self._cells.final[cell]))

    def dipped(self) -> Mask:
        return self._seen.dipped()[self._of_load()]

    def overtaken_ms(self) -> float | None:
        """Return the most by which events of a cell were overtaken on their way to the engine; None: unknown."""
        return max(self._overtaken_us) / 1000 if self._events.turns else None

    def _of_load(self) -> Mask:
        return ~self._cells.marked & (self._times.last_due_us >= self._epoch_us)

    def _raws(self, raw: Raw) -> Raws:
        return Raws.of(raw, self.folder)

    def _raw(self, visible_us: Floats, due_us: Ints, sent_us: Ints) -> Raw:
        measured = due_us >= self._epoch_us
        corrected_ms, uncorrected_ms = ((visible_us - begin_us)[measured] / 1000 for begin_us in (due_us, sent_us))
        return Raw(due_us[measured], corrected_ms, uncorrected_ms)


def _overtaken_us(cells: range, events: Events) -> int:
    if events.turn is None:
        return 0
    own = np.flatnonzero(~events.mark)
    cell = events.cell[own].astype(np.int64) - cells.start
    return int(overtaken_us(cell, events.due_us[own], events.turn[own].astype(np.int64)).max(initial=0))
