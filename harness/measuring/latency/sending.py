"""Find when each event of the log was due and sent, from the tape's due times and the send log.

A copy has the id of its original. They are distinguished by partition and by their order in it, which is the order in
which a server sends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from generators.schedule import Schedule
from harness.evidence.grouping import repeated, spans
from harness.evidence.observed import LogEvents
from harness.evidence.send_index import SendLog, column, first_ids
from harness.measuring.latency.visibility import Ints, Mask
from harness.model import INDEX_BITS, INDEX_MASK, MARK_SERVER
from workloads.sentinels import is_opening

_PARTITION_BITS = 10
_COPY_BITS = 5
_NONE: Ints = np.empty(0, dtype=np.int64)
# Opening sentinel records rank before all events, closing ones after them.
_BEFORE_US, _AFTER_US = 0, np.iinfo(np.int64).max >> 2


@dataclass(frozen=True)
class _Planned:
    """Slots, a row each."""

    id: Ints  # of the event that it sends, -1 if it sends none
    partition: Ints
    slot: Ints
    due_us: Ints  # absolute


class Sending:
    """The due and send times of a run's events.

    If the send log has another due time than the plan, as for a burst, the send log's time counts. `again`: the ids of
    events with more than one record in the log, as far as known.
    """

    def __init__(self, schedule: Schedule, epoch_ms: int, books: SendLog, again: Ints = _NONE) -> None:
        self._reel, self._epoch_us = schedule, epoch_ms * 1000
        self._copies, self._copied = schedule.copies()
        self._several = np.unique(np.concatenate((self._copied, again)))
        first = first_ids(books)
        order = np.argsort(first)
        self._first = first[order]
        # Row -1, for a slot without a row, is the last one.
        self._sent_us = np.append(column(books, "sent_us")[order], 0) + self._epoch_us
        due_us = column(books, "intended_us")[order]
        planned_us = schedule.slices_due_us(column(books, "server"), column(books, "slice"))[order]
        self._moved = np.append(due_us != planned_us, False)
        self._due_us = np.append(due_us, 0) + self._epoch_us if self._moved.any() else None

    def of_several(self, events: LogEvents) -> Mask:
        """Select events that may have several records. Their times depend on all of them."""
        return _among(events.id, self._several)

    def of(self, events: LogEvents) -> tuple[Mask, Ints, Ints]:
        """Return for each event whether it is ours, and its absolute due and send times. If an event has several
        records, all of them are needed.

        An event in several cells has several rows, and is no copy of itself.
        """
        begins = events.begins_record
        known, due_us, sent_us = self._of_records(events.only(begins))
        if begins.all():
            return known, due_us, sent_us
        of_record = np.cumsum(begins) - 1
        return known[of_record], due_us[of_record], sent_us[of_record]

    def _of_records(self, events: LogEvents) -> tuple[Mask, Ints, Ints]:
        """Each record was sent in its own slot, except the few with copies."""
        twice = np.unique(np.concatenate((self._several, repeated(events.id))))
        found = known, due_us, sent_us = np.zeros(len(events), dtype=np.bool_), *np.zeros((2, len(events)), np.int64)
        several = [np.zeros(0, dtype=np.intp)]
        for rows in spans(len(events)):
            ids = events.id[rows]
            planned = self._planned(ids)
            own = (planned.id == ids) & (planned.partition == events.partition[rows])
            known[rows], due_us[rows], sent_us[rows] = self._told(ids, np.where(own, ids, -1), planned.due_us)
            several.append(rows.start + np.flatnonzero(_among(ids, twice)))
        if len(others := np.concatenate(several)):
            slot, slot_due_us = self._slots_of_several(events.only(others))
            known[others], due_us[others], sent_us[others] = self._told(events.id[others], slot, slot_due_us)
        return found

    def _slots_of_several(self, events: LogEvents) -> tuple[Ints, Ints]:
        """Return the slot in which each event was sent (with its server above), or -1, and its due time."""
        wanted = np.unique(events.id)
        planned = self._planned(np.concatenate((wanted, self._copies[_among(self._copied, wanted)])))
        found, at = _matched(events, planned)
        slot, due_us = np.full(len(events), -1, dtype=np.int64), np.zeros(len(events), dtype=np.int64)
        slot[found], due_us[found] = planned.slot[at], planned.due_us[at]
        return slot, due_us

    def _told(self, ids: Ints, slot: Ints, due_us: Ints) -> tuple[Mask, Ints, Ints]:
        """Look up events in these slots, with their planned due times."""
        row = self._rows(slot)
        if self._due_us is not None:
            due_us = np.where(self._moved[row], self._due_us[row], due_us)
        sent_us = self._sent_us[row]
        is_mark = ids >> INDEX_BITS == MARK_SERVER
        mark_us = np.where(is_opening(ids & INDEX_MASK, self._reel.spec.partitions), _BEFORE_US, _AFTER_US)
        return (slot >= 0) | is_mark, np.where(is_mark, mark_us, due_us), np.where(is_mark, mark_us, sent_us)

    def _planned(self, slots: Ints) -> _Planned:
        """Return what these slots send. A poison record, or a slot that does not exist, has no id."""
        ids, partition, due_us = np.full(len(slots), -1, dtype=np.int64), *np.zeros((2, len(slots)), dtype=np.int64)
        for server, rows in self._reel.by_server(slots):
            events = self._reel.events(server, slots[rows] & INDEX_MASK)
            ids[rows] = np.where(events.poison == 0, events.id.astype(np.int64), -1)
            partition[rows], due_us[rows] = events.partition, events.intended_us + self._epoch_us
        return _Planned(ids, partition, slots, due_us)

    def _rows(self, slot: Ints) -> NDArray[np.intp]:
        """Return the row of each slot in the send log, which has a row for each slice that the client got; -1: none."""
        return np.searchsorted(self._first, slot, side="right") - 1


def _among(ids: Ints, some: Ints) -> Mask:
    """Select ids that are in a small sorted array."""
    return np.asarray(np.append(some, -1)[np.searchsorted(some, ids)] == ids)


def _matched(events: LogEvents, planned: _Planned) -> tuple[Mask, NDArray[np.intp]]:
    """Select events that were planned, and return the row of each in the plan."""
    wanted, wanted_order = _names(events.id, events.partition, events.offset)
    names, order = _names(planned.id, planned.partition, planned.slot)
    place = np.searchsorted(names, wanted)
    known = np.append(names, -1)[place] == wanted
    found, at = np.zeros(len(wanted), dtype=np.bool_), np.zeros(len(wanted), dtype=np.intp)
    found[wanted_order], at[wanted_order] = known, np.append(order, -1)[place]
    return found, at[found]


def _names(
    ids: Ints, partition: NDArray[np.signedinteger[Any]], order_in_partition: NDArray[np.integer[Any]]
) -> tuple[Ints, NDArray[np.intp]]:
    """Return each event's unique name (id, partition, and number among equal ones), sorted, and its row."""
    whole = ids.astype(np.int64) << _PARTITION_BITS | partition
    order = np.lexsort((order_in_partition, whole))
    ordered = whole[order]
    number = np.arange(len(ordered)) - np.searchsorted(ordered, ordered)
    return ordered << _COPY_BITS | np.minimum(number, (1 << _COPY_BITS) - 1), order
