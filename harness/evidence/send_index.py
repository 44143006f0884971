"""The send log: a row for each slice that the client got."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from harness.evidence.grouping import spans
from harness.model import INDEX_BITS


class Slices:
    """The send log in the order of ids, to look up some events at a time."""

    def __init__(self, books: pa.Table) -> None:
        server, low, high = (
            np.asarray(books.column(name).to_numpy(), dtype=np.int64) for name in ("server", "slot_lo", "slot_hi")
        )
        order = np.argsort(server << INDEX_BITS | low)
        self._begin = (server << INDEX_BITS | low)[order]
        self._end = np.append((server << INDEX_BITS | high)[order], 0)
        self._row = np.append(order, -1).astype(np.int32)

    def of(self, ids: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the row with each event's own slot; -1 if it was never recorded."""
        found = np.full(len(ids), -1, dtype=np.int32)
        for some in spans(len(ids)):
            place = np.searchsorted(self._begin, ids[some], side="right") - 1
            booked = (place >= 0) & (ids[some] < self._end[place])
            found[some] = np.where(booked, self._row[place], -1)
        return found


def send_rows(books: pa.Table, ids: NDArray[np.int64]) -> NDArray[np.int32]:
    """Look up all events at once."""
    return Slices(books).of(ids)


class SentTimes:
    """The earliest time at which each event was sent; 0: unknown. A copy counts as sent with its original."""

    def __init__(self, books: pa.Table, epoch_ms: int) -> None:
        self._slices = Slices(books)
        self._of_row = np.append(books.column("sent_us").to_numpy().astype(np.int64) + epoch_ms * 1000, 0)

    def of(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.asarray(self._of_row[self.rows(ids)])

    def rows(self, ids: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the row with each event's own slot; -1 if it was never recorded."""
        return self._slices.of(ids)
