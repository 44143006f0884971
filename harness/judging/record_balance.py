"""Count how often each planned event is in the log: one bit for each, and a number for the few that are there more
often, or were planned to be.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from workloads.base import Ints

AT_ONCE = 1 << 20  # places


class RecordBalance:
    """Records seen less records planned, for each place of a schedule."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._seen = np.zeros(-(-total // 8), dtype=np.uint8)  # a bit for each place
        self._again = [np.zeros(0, dtype=np.int64)]  # places of further records
        self._odd, self._by = np.zeros((2, 0), dtype=np.int64)  # sorted places, and what their balance is besides

    def add(self, places: Ints) -> Ints:
        """Add a record for each of these places, in any order. Return those that have more than one by now."""
        places = np.sort(places)
        is_first = np.diff(places, prepend=-1) != 0
        own = places[is_first]
        byte, bit = own >> 3, _bit(own)
        was_seen = self._seen[byte] & bit != 0
        if not was_seen.all():
            begins = np.flatnonzero(np.diff(byte, prepend=-1))
            self._seen[byte[begins]] |= np.bitwise_or.reduceat(bit, begins)
        again = np.concatenate((places[~is_first], own[was_seen]))
        if len(again):
            self._again.append(again)
        return again

    def merge(self, other: RecordBalance) -> None:
        """Add the records of another part of the log."""
        byte = np.flatnonzero(self._seen & other._seen)
        both = self._seen[byte] & other._seen[byte]
        rows, bits = np.nonzero(both[:, None] >> np.arange(8) & 1)
        self._again += [byte[rows] * 8 + bits, *other._again]
        self._seen |= other._seen

    def plan(self, instead: Ints, copied: Ints) -> None:
        """Compare with the plan, after all records were added.

        It has each place once, except those that send a copy of another one `instead`, which is `copied`.
        """
        more = np.concatenate((*self._again, instead))
        self._odd, of_place = np.unique(np.concatenate((more, copied)), return_inverse=True)
        self._by = np.zeros(len(self._odd), dtype=np.int64)
        np.add.at(self._by, of_place, np.repeat((1, -1), (len(more), len(copied))))

    def of(self, places: Ints) -> Ints:
        """Return the balance of these places."""
        seen = (self._seen[places >> 3] & _bit(places) != 0).astype(np.int64)
        at = np.searchsorted(self._odd, places)
        is_odd = np.append(self._odd, -1)[at] == places
        return np.asarray(seen - 1 + np.where(is_odd, np.append(self._by, 0)[at], 0))

    def unequal(self) -> Iterator[tuple[Ints, Ints]]:
        """Yield the places whose balance is not 0, in order, with the balance of each."""
        for begin in range(0, self._total, AT_ONCE):
            places = np.arange(begin, min(begin + AT_ONCE, self._total))
            balance = self.of(places)
            rows = np.flatnonzero(balance)
            yield places[rows], balance[rows]


def _bit(places: Ints) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    return np.left_shift(np.uint8(1), (places & 7).astype(np.uint8))
