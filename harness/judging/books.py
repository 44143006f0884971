"""The books of the load: a row for each slice that the client got."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from harness.judging.grouping import spans
from harness.model import INDEX_BITS


def slices_of(books: pa.Table, ids: NDArray[np.int64]) -> NDArray[np.int32]:
    """The row in which each event's own slot lies; -1 for what was never booked."""
    server, low, high = (
        np.asarray(books.column(name).to_numpy(), dtype=np.int64) for name in ("server", "slot_lo", "slot_hi")
    )
    order = np.argsort(server << INDEX_BITS | low)
    begin, end = (server << INDEX_BITS | low)[order], (server << INDEX_BITS | high)[order]
    row, latest = np.append(order, -1).astype(np.int32), np.append(end, 0)
    found = np.full(len(ids), -1, dtype=np.int32)
    for some in spans(len(ids)):
        place = np.searchsorted(begin, ids[some], side="right") - 1
        booked = (place >= 0) & (ids[some] < latest[place])
        found[some] = np.where(booked, row[place], -1)
    return found
