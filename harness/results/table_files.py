"""Tables of files that are written once: what a version of the table consists of is a list of files.

A poll asks for the version first, and reads the files that are new.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import unquote

from harness.model import HarnessError
from harness.results.base import HeldFile, PolledStore, ResultLocation
from harness.results.columns import LOOKS_FOR, PRINTS, Columns
from harness.results.redis_scan import HASH, Row, UnreadableTableError
from harness.util.integers import parse_int64

BEYOND = re.compile(r"\s+(?:0: <unknown>|\[type=|For further information)")
LONGEST = 300  # characters of an error's own text
T = TypeVar("T")
UNREAD = object()  # the version, before one was read


class TableFile(NamedTuple):
    """A Parquet file of a table, with the columns that are in its place and not in the file."""

    path: str
    partition: tuple[tuple[str, Any], ...] = ()


class FileTable(PolledStore):
    """A table in a folder below the one that the job's run config names."""

    looks_for = LOOKS_FOR
    prints = PRINTS
    when_empty = "the table of the results is empty or does not exist; it belongs in the `folder` of the job's config"

    def __init__(self, location: ResultLocation) -> None:
        super().__init__(location)
        self.path = location.folder / location.manifest.table
        self._columns = Columns(location)
        self._seen: object = UNREAD
        self._rows: list[Row] = []
        self._files: list[TableFile] = []
        self._cells: dict[TableFile, list[Row]] = {}

    @abstractmethod
    def version(self) -> object:
        """Return the current version of the table as a comparable value; None if there is no table yet."""

    @abstractmethod
    def files(self) -> Iterable[TableFile]:
        """Return the files of that version."""

    def rows(self) -> list[Row]:
        return self.reading(self._current)

    def reading(self, read: Callable[[], T]) -> T:
        """Read, and name the table in an error, also for a file that the job has just deleted."""
        try:
            return read()
        except HarnessError:
            raise
        except Exception as error:  # noqa: BLE001  (whatever a library makes of a table that is torn or too new)
            raise UnreadableTableError(f"The table {self.path} can't be read: {words_of(error)}.") from None

    def take(self, version: object) -> None:
        """Read the files of the current version that the one before did not have."""
        self._files = [] if version is None else [*self.files()]
        every = self.content(self._files)
        self._rows = [*added(every)] if self._location.manifest.sums else self._columns.together(every)
        self._seen = version

    def _current(self) -> list[Row]:
        version = self.version()
        if version != self._seen:
            self.take(version)
        return self._rows

    def content(self, files: Sequence[TableFile]) -> Iterable[Row]:
        """Return the rows of these files. Those that were there before are not read again."""
        before = self._cells  # also of a file without rows
        self._cells = {file: before[file] if file in before else self._read(file) for file in files}
        return (row for rows in self._cells.values() for row in rows)

    def layout(self) -> list[HeldFile]:
        """Read the sizes of the files that were read last. One that was deleted since is left out."""
        held = []
        for file in self._files:
            with suppress(OSError):
                held.append(_held(Path(file.path), self.path))
        return held

    def _read(self, file: TableFile) -> list[Row]:
        from pyarrow import parquet

        with parquet.ParquetFile(file.path) as opened:
            beside = dict(file.partition)
            present = [*opened.schema_arrow.names, *beside]
            names = self._columns.chosen(present)
            if names is None:
                raise self._lacks(present)
            asked = {name: self._columns.column_of(name) for name in names}
            inside = [column for column in asked.values() if column not in beside]
            table = opened.read(columns=inside)
        return [*self._columns.rows(_named(file, table, asked, beside))]

    def _lacks(self, present: Sequence[str]) -> UnreadableTableError:
        return UnreadableTableError(f"The results in {self.path} can't be read: {self._columns.missing(present)}.")


def _held(path: Path, below: Path) -> HeldFile:
    from pyarrow import parquet

    folders = [unquote(part) for part in path.relative_to(below).parts[:-1] if "=" in part]
    return HeldFile("/".join(folders), path.stat().st_size, parquet.read_metadata(path).num_rows)


def _named(
    file: TableFile, table: Any, asked: Mapping[str, str], beside: Mapping[str, Any]
) -> Iterator[tuple[str, dict[str, Any]]]:
    columns = {
        name: [beside[column]] * table.num_rows if column in beside else table[column].to_pylist()
        for name, column in asked.items()
    }
    for number, values in enumerate(zip(*columns.values(), strict=True), 1):
        yield f"{Path(file.path).name}, row {number}", dict(zip(columns, values, strict=True))


def added(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield one row a cell, with the sum of all of its rows, or the one that is no number; what is no cell stays."""
    sums: dict[tuple[str, str], int] = defaultdict(int)
    unreadable: dict[tuple[str, str], Row] = {}
    for row in rows:
        if row.kind != HASH:
            yield row
        elif (number := parse_int64(row.value)) is None:
            unreadable[row.key, row.field] = row
        else:
            sums[row.key, row.field] += number
    yield from unreadable.values()
    for (key, field), value in sums.items():
        if (key, field) not in unreadable:
            yield Row(key, field, str(value), HASH)


def words_of(error: Exception) -> str:
    """Return an error's own text in one line, without what libraries add: a stack, the input, an address."""
    said = " ".join(BEYOND.split(str(error))[0].split())[:LONGEST].rstrip(".")
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def local(path: str) -> str:
    """Remove the scheme of a local file."""
    for scheme in ("file://", "file:"):
        if path.startswith(scheme):
            return path.removeprefix(scheme)
    return path
