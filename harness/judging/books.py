"""The books of the load: a row for each slice that the client got."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from harness.model import INDEX_BITS


def slices_of(books: pa.Table, ids: NDArray[np.int64]) -> NDArray[np.intp]:
    """The row in which each event's own slot lies; -1 for what was never booked."""
    server, low, high = (
        np.asarray(books.column(name).to_numpy(), dtype=np.int64) for name in ("server", "slot_lo", "slot_hi")
    )
    order = np.argsort(server << INDEX_BITS | low)
    begin, end = (server << INDEX_BITS | low)[order], (server << INDEX_BITS | high)[order]
    place = np.searchsorted(begin, ids, side="right") - 1
    booked = (place >= 0) & (ids < np.append(end, 0)[place])
    return np.where(booked, np.append(order, -1)[place], -1)
