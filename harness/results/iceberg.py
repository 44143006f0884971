"""`iceberg:TABLE`: an Iceberg table in the folder that the job's run config names, such as one of a Hadoop catalog."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from harness.results.base import ResultLocation
from harness.results.iceberg_merge import Deletes, Entry, alive, numbered
from harness.results.redis_scan import Row, UnreadableError
from harness.results.table_files import FileTable, TableFile, local

# A Hadoop catalog counts its versions; other catalogs add a random part. Both write a file under another name first.
NUMBER = re.compile(r"(?:v(\d+)|(\d{5})-[0-9a-f-]{36})(?:\.gz)?\.metadata\.json")


class Iceberg(FileTable):
    form = "iceberg:TABLE"

    def __init__(self, location: ResultLocation) -> None:
        super().__init__(location)
        self._metadata: Path | None = None
        self._table: Any = None
        self._data: list[Entry] = []
        self._deletes: list[Deletes] = []
        self._tables: dict[Entry, Any] = {}  # of a table with deleted rows

    def version(self) -> object:
        newest = newest_metadata(self.path / "metadata")
        if newest is None:
            return None
        if newest != self._metadata:
            from pyiceberg.table import StaticTable

            self._table = StaticTable.from_metadata(str(newest))
            self._metadata = newest
        snapshot = self._table.current_snapshot()
        return snapshot.snapshot_id if snapshot else None

    def files(self) -> Iterator[TableFile]:
        return (TableFile(local(entry.path)) for entry in self._data)

    def _content(self) -> Iterable[Row]:
        self._list_files()
        return self._merged() if self._data and self._deletes else super()._content()

    def _list_files(self) -> None:
        self._data, self._deletes = [], []
        for manifest in self._table.current_snapshot().manifests(self._table.io):
            for added in manifest.fetch_manifest_entry(self._table.io):
                self._add(added.data_file, added.sequence_number or 0)

    def _add(self, file: Any, sequence: int) -> None:
        from pyiceberg.manifest import DataFileContent, FileFormat

        entry = Entry(file.file_path, sequence)
        if file.file_format != FileFormat.PARQUET:
            raise UnreadableError(
                f"The Iceberg table {self.path} has a file of the format {file.file_format.name}. Let the job write "
                "Parquet, with 'format-version' = '2'."
            )
        if file.content == DataFileContent.DATA:
            self._data.append(entry)
            return
        schema = self._table.schema()
        columns = tuple(schema.find_column_name(number) or "" for number in file.equality_ids or ())
        self._deletes.append(Deletes(entry, columns))

    def _merged(self) -> Iterator[Row]:
        """Yield the rows that are not deleted. Files that were there before are not read again."""
        import pyarrow as pa

        read = self._tables
        entries = [*self._data, *(each.entry for each in self._deletes)]
        self._tables = {entry: read[entry] if entry in read else _content_of(entry) for entry in entries}
        rows = alive(
            pa.concat_tables([numbered(self._tables[entry], entry) for entry in self._data]),
            {each: self._tables[each.entry] for each in self._deletes},
        )
        names = self._columns.chosen(rows.column_names)
        if names is None:
            raise self._lacks(rows.column_names)
        table = rows.select([self._columns.column_of(name) for name in names]).rename_columns(names)
        return self._columns.rows((f"row {number}", values) for number, values in enumerate(table.to_pylist(), 1))


def _content_of(entry: Entry) -> Any:
    from pyarrow import parquet

    with parquet.ParquetFile(local(entry.path)) as opened:
        return opened.read()


def newest_metadata(folder: Path) -> Path | None:
    """Return the file of the current version; a commit is the appearance of the next one."""
    numbered = ((NUMBER.fullmatch(path.name), path) for path in folder.glob("*.metadata.json"))
    return max(((int(found[1] or found[2]), path) for found, path in numbered if found), default=(0, None))[1]
