"""`iceberg:TABLE`: an Iceberg table in the folder that the job's run config names, such as one of a Hadoop catalog."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.results.base import ResultLocation
from harness.results.iceberg_merge import Deletes, Entry, alive, numbered
from harness.results.redis_scan import Row, UnreadableTableError
from harness.results.table_files import TableFile, local
from harness.results.table_history import CommitFile, TableWithHistory

# A Hadoop catalog counts its versions; other catalogs add a random part. Both write a file under another name first.
NUMBER = re.compile(r"(?:v(\d+)|(\d{5})-[0-9a-f-]{36})(?:\.gz)?\.metadata\.json")
BATCH, QUERY = "spark.sql.streaming.epochId", "spark.sql.streaming.queryId"


class Iceberg(TableWithHistory):
    form = "iceberg:TABLE"

    def __init__(self, location: ResultLocation) -> None:
        super().__init__(location)
        self._table: Any = None
        self._data: list[Entry] = []
        self._deletes: list[Deletes] = []
        self._tables: dict[Entry, Any] = {}  # of a table with deleted rows

    def version(self) -> object:
        found = metadata_files(self.path / "metadata")
        if not found:
            return None
        if found[-1].number != self._seen:
            self.load(found[-1])
        return found[-1].number

    def files(self) -> Iterator[TableFile]:
        self._data, self._deletes = [], []
        if snapshot := self._table.current_snapshot():
            for manifest in snapshot.manifests(self._table.io):
                for added in manifest.fetch_manifest_entry(self._table.io):
                    self._add(added.data_file, added.sequence_number or 0)
        return (TableFile(local(entry.path)) for entry in self._data)

    def content(self, files: Sequence[TableFile]) -> Iterable[Row]:
        return self._merged() if files and self._deletes else super().content(files)

    def _add(self, file: Any, sequence: int) -> None:
        from pyiceberg.manifest import DataFileContent, FileFormat

        entry = Entry(file.file_path, sequence)
        if file.file_format != FileFormat.PARQUET:
            raise UnreadableTableError(
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

    def commits(self, after: int | None) -> Sequence[CommitFile] | None:
        found = metadata_files(self.path / "metadata")
        if after is not None and after not in (each.number for each in found):
            return None  # it was made anew
        return [each for each in found if after is None or each.number > after]

    def load(self, commit: CommitFile) -> None:
        from pyiceberg.table import StaticTable

        self._table = StaticTable.from_metadata(str(commit.path))

    def described(self, commit: CommitFile) -> tuple[str, str]:
        snapshot = self._table.current_snapshot()
        if snapshot is None or snapshot.summary is None:
            return f"version {commit.number}", ""
        said = snapshot.summary
        return f"snapshot {snapshot.snapshot_id}", writer_of(said.operation.value, said.additional_properties)


def _content_of(entry: Entry) -> Any:
    from pyarrow import parquet

    with parquet.ParquetFile(local(entry.path)) as opened:
        return opened.read()


def writer_of(operation: str, said: Mapping[str, str]) -> str:
    """Return what a snapshot's summary says of its writer: the operation, the program, and the number of its batch."""
    program = [f"by {said['engine-name']} {said.get('engine-version', '')}".rstrip()] if "engine-name" in said else []
    batch = [f"batch {said[BATCH]} of {said.get(QUERY, 'a query')}"] if BATCH in said else []
    return ", ".join([" ".join([operation, *program]), *batch])


def newest_metadata(folder: Path) -> Path | None:
    found = metadata_files(folder)
    return found[-1].path if found else None


def metadata_files(folder: Path) -> list[CommitFile]:
    """Return the files of all versions, oldest first; a commit is the appearance of the next one."""
    numbered = ((NUMBER.fullmatch(path.name), path) for path in folder.glob("*.metadata.json"))
    return sorted(CommitFile(int(found[1] or found[2]), path) for found, path in numbered if found)
