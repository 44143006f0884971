"""Rows of many events by the few groups in which they lie, such as their cells. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from workloads.base import Ints

ROWS_AT_ONCE = 1 << 19
SHARES = 8


def narrow(column: Ints) -> NDArray[np.integer[Any]]:
    """With half of its room, where that holds all of it."""
    return column if int(column.max(initial=0)) > np.iinfo(np.int32).max else column.astype(np.int32)


def spans(rows: int) -> Iterator[slice]:
    """All rows, some at once: what is made on the way from many takes many times their room."""
    return (slice(begin, min(begin + ROWS_AT_ONCE, rows)) for begin in range(0, rows, ROWS_AT_ONCE))


def sizes(group: NDArray[np.integer[Any]], groups: int) -> Ints:
    """How many rows each of them has."""
    counts = (np.bincount(group[some], minlength=groups) for some in spans(len(group)))
    return sum(counts, np.zeros(groups, dtype=np.int64))


def some_groups(bounds: Ints) -> Iterator[range]:
    """All groups, some at once. `bounds`: where each begins if they lie side by side, and where the last one ends."""
    begin, groups = 0, len(bounds) - 1
    while begin < groups:
        end = max(begin + 1, int(np.searchsorted(bounds, bounds[begin] + ROWS_AT_ONCE, side="right")) - 1)
        yield range(begin, end)
        begin = end


def rows_of_groups(group: NDArray[np.integer[Any]], groups: int) -> Iterator[tuple[range, NDArray[np.intp]]]:
    """The same of rows in any order, with the rows of these groups."""
    bounds = np.append(0, np.cumsum(sizes(group, groups)))
    for some in some_groups(bounds):
        yield some, np.flatnonzero((group >= some.start) & (group < some.stop))


def repeated(ids: Ints) -> Ints:
    """Those that are there more than once, in order. They are looked for in shares, each a copy of its own."""
    share = ids.astype(np.uint8) % SHARES
    found = []
    for number in range(SHARES):
        own = np.sort(ids[share == number])
        found.append(own[1:][own[1:] == own[:-1]])
    return np.unique(np.concatenate(found))


def numbered(codes: Ints) -> tuple[Ints, NDArray[np.int32]]:
    """The codes in their order, and which of them each is: as numpy's `unique` has it, in a twentieth of its time."""
    found = pa.array(codes).dictionary_encode()
    known = np.asarray(found.dictionary.to_numpy())
    order = np.argsort(known)
    place = np.empty(len(known), dtype=np.int32)
    place[order] = np.arange(len(known), dtype=np.int32)
    return known[order], place[found.indices.to_numpy()]


def by_groups(group: NDArray[np.integer[Any]], order: NDArray[np.intp]) -> NDArray[np.intp]:
    """Rows that are in some order, now by their group first."""
    return np.asarray(order[grouped(group[order])])


def grouped(group: NDArray[np.integer[Any]]) -> NDArray[np.intp]:
    """Rows by their group, those of one in their order. Groups are numbers from 0 on: small ones are sorted in one go,
    whatever their number."""
    return np.argsort(group.astype(np.min_scalar_type(int(group.max(initial=0)))), kind="stable")
