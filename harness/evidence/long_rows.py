"""Rows that may take more memory than there is. Many of them lie in a file without a name, on the disk of the run.

The system frees such a file with its last user, even if that is killed.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from tempfile import SpooledTemporaryFile, gettempdir
from typing import Any, Generic, TypeVar
from weakref import finalize

import numpy as np
from numpy.typing import DTypeLike, NDArray

from harness.evidence import grouping
from harness.evidence.grouping import grouped, numbered, sizes, some_groups, spans
from harness.host import disk_space
from workloads.base import Ints

Floats = NDArray[np.float64]
AnyRows = NDArray[Any]
_Part = TypeVar("_Part")

BYTES_HELD = 1 << 24  # as many are kept in memory; if there are more, all are in the file
LACKING = "a temporary file"  # named in the message about a full disk


def _file(folder: Path | None) -> SpooledTemporaryFile[bytes]:
    return SpooledTemporaryFile(BYTES_HELD, dir=str(folder) if folder else None)


class Rows:
    """Rows of one type. They are appended or overwritten, and read as slices."""

    def __init__(self, kind: DTypeLike, folder: Path) -> None:
        self.kind, self.folder = np.dtype(kind), folder
        self._file = _file(folder)
        finalize(self, self._file.close)
        self._end = 0

    def __len__(self) -> int:
        return self._end

    def add(self, rows: AnyRows) -> None:
        self.write(self._end, rows)

    def write(self, begin: int, rows: AnyRows) -> None:
        with disk_space.writing(self.folder / LACKING, rows.nbytes):
            self._file.seek(begin * self.kind.itemsize)
            self._file.write(np.ascontiguousarray(rows, self.kind).tobytes())
        self._end = max(self._end, begin + len(rows))

    def read(self, rows: slice) -> AnyRows:
        size = self.kind.itemsize
        self._file.seek(rows.start * size)
        return np.frombuffer(self._file.read((rows.stop - rows.start) * size), self.kind)

    def parts(self) -> Iterator[AnyRows]:
        """Yield all rows in parts: at least one, so that even no rows have their type."""
        yield self.read(slice(0, min(len(self), grouping.ROWS_AT_ONCE)))
        for some in islice(spans(len(self)), 1, None):
            yield self.read(some)

    def total(self, rows: slice | None = None) -> float:
        """Sum numbers, in halves of halves as numpy does: the sum is that of all of them in one array, to the bit."""
        begin, end = (0, len(self)) if rows is None else (rows.start, rows.stop)
        if end - begin <= grouping.ROWS_AT_ONCE:
            return float(self.read(slice(begin, end)).sum())
        half = (end - begin) // 2
        middle = begin + half - half % 8
        return self.total(slice(begin, middle)) + self.total(slice(middle, end))


class Parts(Generic[_Part]):
    """Values in an order, such as parts of a log with a few columns. They are written once, and read in each pass."""

    def __init__(self, folder: Path | None) -> None:
        self._folder, self._file = folder, _file(folder)
        finalize(self, self._file.close)
        self._end = 0

    def add(self, part: _Part) -> None:
        with disk_space.writing((self._folder or Path(gettempdir())) / LACKING, 0):
            self._file.seek(self._end)
            pickle.dump(part, self._file, pickle.HIGHEST_PROTOCOL)
        self._end = self._file.tell()

    def __iter__(self) -> Iterator[_Part]:
        place = 0
        while place < self._end:
            self._file.seek(place)  # another pass may have moved it
            part: _Part = pickle.load(self._file)
            place = self._file.tell()
            yield part


def ordered(
    parts: Iterable[tuple[NDArray[np.integer[Any]], AnyRows]],
    group_sizes: Ints,
    rows: Rows,
    arrange: Callable[[AnyRows], AnyRows],
) -> Rows:
    """Write rows in the order of their groups into `rows`, which is empty.

    Each part has the group of each row, and the rows. `group_sizes` counts the rows of each group, and `arrange` puts
    the rows of a few groups into their order.
    """
    bounds = np.append(0, np.cumsum(group_sizes))
    shares = [*some_groups(bounds)]
    share_of_group = np.repeat(np.arange(len(shares), dtype=np.int32), [len(share) for share in shares])
    ends = [int(bounds[share.start]) for share in shares]
    for group, part in parts:
        share = share_of_group[group]
        in_shares, begin = part[grouped(share)], 0
        for number, count in enumerate(sizes(share, len(shares)).tolist()):
            if count:
                rows.write(ends[number], in_shares[begin : begin + count])
                begin, ends[number] = begin + count, ends[number] + count
    for share in shares:
        own = slice(int(bounds[share.start]), int(bounds[share.stop]))
        rows.write(own.start, arrange(rows.read(own)))
    return rows


class Ascending:
    """Numbers in ascending order, to read some of them by their rank."""

    def __init__(self, parts: Iterable[Floats], folder: Path) -> None:
        """Numbers between the same two whole ones are a group."""
        kept, known, counts = Rows(np.float64, folder), np.empty(0), np.empty(0, dtype=np.int64)
        for part in parts:
            kept.add(part)
            found, place = _wholes(part)
            known, counts = _added(known, counts, found, sizes(place, len(found)))

        def by_whole() -> Iterator[tuple[NDArray[np.intp], Floats]]:
            for part in kept.parts():
                found, place = _wholes(part)
                yield np.searchsorted(known, found)[place], part

        self._rows = ordered(by_whole(), counts, Rows(np.float64, folder), np.sort)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int) -> float:
        return float(self._rows.read(slice(int(index), int(index) + 1))[0])

    def mean(self) -> float:
        return self._rows.total() / len(self)


def _wholes(values: Floats) -> tuple[Floats, NDArray[np.int32]]:
    """Return the distinct whole numbers below these, and the index of each."""
    found, place = numbered(np.floor(values).astype(np.int64))
    return found.astype(np.float64), place


def _added(known: Floats, counts: Ints, found: Floats, often: Ints) -> tuple[Floats, Ints]:
    """Add counts of distinct values to those that are known."""
    values, place = np.unique(np.concatenate((known, found)), return_inverse=True)
    return values, np.bincount(place, np.concatenate((counts, often))).astype(np.int64)


class Distinct:
    """The distinct values of a column that is read in parts."""

    def __init__(self) -> None:
        self._known, self._waiting = np.empty(0, dtype=np.int64), list[Ints]()

    def add(self, values: Ints) -> None:
        """Add distinct values. They wait until they are as many as those that are known."""
        self._waiting.append(values)
        if sum(map(len, self._waiting)) > max(len(self._known), grouping.ROWS_AT_ONCE):
            self.sorted()

    def sorted(self) -> Ints:
        self._known = np.unique(np.concatenate((self._known, *self._waiting)))
        self._waiting = []
        return self._known
