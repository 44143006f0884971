"""Tables of files that are written once: what a version of the table consists of is a list of files.

A poll asks for the version first, and reads the files that are new.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from harness.results.base import PolledStore, ResultLocation
from harness.results.columns import LOOKS_FOR, PRINTS, Columns
from harness.results.redis_scan import HASH, Row, UnreadableError

LONGEST = 300  # characters of an error's own text


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
        self._seen: object = None
        self._rows: list[Row] = []
        self._cells: dict[TableFile, list[Row]] = {}

    @abstractmethod
    def version(self) -> object:
        """Return the current version of the table as a comparable value; None if there is no table yet."""

    @abstractmethod
    def files(self) -> Iterable[TableFile]:
        """Return the files of that version."""

    def rows(self) -> list[Row]:
        import pyarrow as pa

        try:
            return self._current()
        except (OSError, ValueError, pa.ArrowException) as error:  # also for a file that the job has just deleted
            said = " ".join(str(error).split())[:LONGEST]
            raise UnreadableError(f"The table {self.path} can't be read: {type(error).__name__}: {said}.") from None

    def _current(self) -> list[Row]:
        version = self.version()
        if version is None:
            return []
        if version != self._seen:
            self._rows, self._seen = [*self._cells_of(self._content())], version
        return self._rows

    def _content(self) -> Iterable[Row]:
        """Return the rows of the current version; those of files that were there before are not read again."""
        before = self._cells  # also of a file without rows
        self._cells = {file: before[file] if file in before else self._read(file) for file in self.files()}
        return (row for rows in self._cells.values() for row in rows)

    def _cells_of(self, rows: Iterable[Row]) -> Iterable[Row]:
        return added(rows) if self._location.manifest.sums else rows

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

    def _lacks(self, present: Sequence[str]) -> UnreadableError:
        return UnreadableError(f"The results in {self.path} can't be read: {self._columns.missing(present)}.")


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
    """Yield one row a cell, with the sum of all of its rows; what is no cell stays."""
    sums: dict[tuple[str, str], int] = defaultdict(int)
    for row in rows:
        if row.kind == HASH:
            sums[row.key, row.field] += int(row.value)
        else:
            yield row
    for (key, field), value in sums.items():
        yield Row(key, field, str(value), HASH)


def local(path: str) -> str:
    """Remove the scheme of a local file."""
    for scheme in ("file://", "file:"):
        if path.startswith(scheme):
            return path.removeprefix(scheme)
    return path
