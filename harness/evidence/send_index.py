"""The send log: a row for each slice that the client got."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from harness.evidence.grouping import spans
from harness.model import INDEX_BITS
from harness.rundir.tables import LongTable
from workloads.base import Ints

SendLog: TypeAlias = LongTable | pa.Table


def column(books: SendLog, name: str) -> Ints:
    """Read one column. A run of a billion events has millions of slices, so readers hold few columns at a time."""
    return np.asarray(books.column(name).to_numpy(), dtype=np.int64)


def first_ids(books: SendLog) -> Ints:
    """Return the first id of each slice."""
    return column(books, "server") << INDEX_BITS | column(books, "slot_lo")


class Slices:
    """The send log in the order of ids, to look up some events at a time."""

    def __init__(self, books: SendLog) -> None:
        begin = first_ids(books)
        order = np.argsort(begin)
        self._begin = np.append(begin[order], 0)  # row -1, for what has no place, is the last one
        sizes = column(books, "slot_hi") - column(books, "slot_lo")
        self._size = np.append(sizes[order], 0).astype(np.int32)
        self._row = np.append(order, -1).astype(np.int32)

    def of(self, ids: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the row with each event's own slot; -1 if it was never recorded."""
        found = np.full(len(ids), -1, dtype=np.int32)
        for some in spans(len(ids)):
            place = np.searchsorted(self._begin[:-1], ids[some], side="right") - 1
            booked = (place >= 0) & (ids[some] - self._begin[place] < self._size[place])
            found[some] = np.where(booked, self._row[place], -1)
        return found


def send_rows(books: SendLog, ids: NDArray[np.int64]) -> NDArray[np.int32]:
    """Look up all events at once."""
    return Slices(books).of(ids)


class SentTimes:
    """The earliest time at which each event was sent; 0: unknown. A copy counts as sent with its original."""

    def __init__(self, books: SendLog, epoch_ms: int) -> None:
        self._slices = Slices(books)
        self._of_row = np.append(column(books, "sent_us") + epoch_ms * 1000, 0)

    def of(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.asarray(self._of_row[self.rows(ids)])

    def rows(self, ids: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the row with each event's own slot; -1 if it was never recorded."""
        return self._slices.of(ids)
