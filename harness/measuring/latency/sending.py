"""When each event of the log was due, and when it was sent: the tape's due times and the books of the load.

A copy has the id of its original. The two are told apart by partition and by their order in it, which is the order in
which one server sends.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from generators.marks import is_opening
from generators.reel import Reel
from harness.judging.readings import LogEvents
from harness.measuring.latency.visibility import Ints, Mask
from harness.model import INDEX_BITS, INDEX_MASK, MARK_SERVER
from workloads.registry import codec_of

_PARTITION_BITS = 10
_COPY_BITS = 5
# Marks are ranked before everything if they are opening ones, and after it if they are closing ones.
_BEFORE_US, _AFTER_US = 0, np.iinfo(np.int64).max >> 2


class Sending:
    """Due and sent, of the views of a run. What was booked as due at another time than planned, as a burst is, was due
    when it was booked."""

    def __init__(self, reel: Reel, epoch_ms: int, books: pa.Table) -> None:
        self._reel, self._epoch_us = reel, epoch_ms * 1000
        server, number, low, due_us, sent_us = (
            np.asarray(books.column(name).to_numpy(), dtype=np.int64)
            for name in ("server", "slice", "slot_lo", "intended_us", "sent_us")
        )
        planned_us = np.array([reel.slice_due_us(*each) for each in zip(server.tolist(), number.tolist(), strict=True)])
        first = server << INDEX_BITS | low
        order = np.argsort(first)
        self._first, self._sent_us = first[order], sent_us[order]
        self._due_us, self._moved = due_us[order], (due_us != planned_us)[order]

    def of(self, events: LogEvents) -> tuple[Mask, Ints, Ints]:
        """For each event whether it is one of ours, and absolutely when it was due and sent. One that lies in several
        cells has several rows, and is no copy of itself."""
        begins = events.begins_record
        known, due_us, sent_us = self._of_records(events.only(begins))
        of_record = np.cumsum(begins) - 1
        return known[of_record], due_us[of_record], sent_us[of_record]

    def _of_records(self, events: LogEvents) -> tuple[Mask, Ints, Ints]:
        slot, due_us = self._slots(events)
        known, row = slot >= 0, self._rows(slot)
        due_us = np.where(self._of_row(self._moved, row), self._of_row(self._due_us, row) + self._epoch_us, due_us)
        sent_us = self._of_row(self._sent_us, row) + self._epoch_us
        is_mark = events.id >> INDEX_BITS == MARK_SERVER
        mark_us = np.where(is_opening(events.id & INDEX_MASK, self._reel.spec.partitions), _BEFORE_US, _AFTER_US)
        return known | is_mark, np.where(is_mark, mark_us, due_us), np.where(is_mark, mark_us, sent_us)

    def _slots(self, events: LogEvents) -> tuple[Ints, Ints]:
        """The slot (its server above) in which each event was sent, or -1, and when that was due."""
        with ThreadPoolExecutor(1) as beside:  # numpy sorts outside of Python's lock, and each takes seconds
            named = beside.submit(_names, events.id, events.partition, events.offset)
            ids, partition, slot, due_us = self._planned()
            names, order = _names(ids, partition, slot)
            wanted, wanted_order = named.result()
        place = np.searchsorted(names, wanted)
        found = np.append(names, -1)[place] == wanted
        rows = np.append(order, -1)[place][found]
        slots, due = np.full(len(events), -1, dtype=np.int64), np.zeros(len(events), dtype=np.int64)
        slots[wanted_order[found]], due[wanted_order[found]] = slot[rows], due_us[rows]
        return slots, due

    def _planned(self) -> tuple[Ints, Ints, Ints, Ints]:
        """All views that were planned: id, partition, slot, and absolutely when it is due."""
        codec, parts = codec_of(self._reel.spec), []
        for block in self._reel.blocks():
            views = codec.counts(block.content) & (block.poison == 0)
            slot = block.slot[views] | block.server << INDEX_BITS
            columns = (block.id[views], block.partition[views], slot, block.intended_us[views] + self._epoch_us)
            parts.append(np.array(columns, dtype=np.int64))
        ids, partition, slots, due_us = np.concatenate([np.zeros((4, 0), dtype=np.int64), *parts], axis=1)
        return ids, partition, slots, due_us

    def _rows(self, slot: Ints) -> NDArray[np.intp]:
        """The row of each slot in the books, which have one for every slice that the client got; -1: none."""
        return np.searchsorted(self._first, slot, side="right") - 1

    @staticmethod
    def _of_row(column: NDArray[Any], row: NDArray[np.intp]) -> NDArray[Any]:
        return np.append(column, column.dtype.type(0))[row]


def _names(
    ids: Ints, partition: NDArray[np.signedinteger[Any]], order_in_partition: Ints
) -> tuple[Ints, NDArray[np.intp]]:
    """Each event's own name, its id, partition and number among its like, in ascending order, and the row of each."""
    whole = ids.astype(np.int64) << _PARTITION_BITS | partition
    order = np.lexsort((order_in_partition, whole))
    ordered = whole[order]
    number = np.arange(len(ordered)) - np.searchsorted(ordered, ordered)
    return ordered << _COPY_BITS | np.minimum(number, (1 << _COPY_BITS) - 1), order
