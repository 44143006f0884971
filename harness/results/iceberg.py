"""`iceberg:TABLE`: an Iceberg table in the folder that the job's run config names, such as one of a Hadoop catalog."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.results.base import ResultLocation
from harness.results.redis_scan import UnreadableTableError
from harness.results.table_files import TableFile, local
from harness.results.table_history import Commit, TableWithHistory

# A Hadoop catalog counts its versions; other catalogs add a random part. Both write a file under another name first.
NUMBER = re.compile(r"(?:v(\d+)|(\d{5})-[0-9a-f-]{36})(?:\.gz)?\.metadata\.json")
BATCH, QUERY = "spark.sql.streaming.epochId", "spark.sql.streaming.queryId"


class Iceberg(TableWithHistory):
    form = "iceberg:TABLE"

    def __init__(self, location: ResultLocation) -> None:
        super().__init__(location)
        self._table: Any = None

    def version(self) -> object:
        found = metadata_files(self.path / "metadata")
        if not found:
            return None
        if found[-1].number != self._seen:
            self.load(found[-1])
        return found[-1].number

    def files(self) -> Iterator[TableFile]:
        for task in self._table.scan().plan_files():
            if task.delete_files:
                raise UnreadableTableError(
                    f"The Iceberg table {self.path} has files with deleted rows, which this reader does not apply. Let "
                    "the job write with 'write.merge.mode' = 'copy-on-write'."
                )
            yield TableFile(local(task.file.file_path))

    def commits(self, after: int | None) -> Sequence[Commit] | None:
        found = metadata_files(self.path / "metadata")
        if after is not None and after not in (each.number for each in found):
            return None  # it was made anew
        return [each for each in found if after is None or each.number > after]

    def load(self, commit: Commit) -> None:
        from pyiceberg.table import StaticTable

        self._table = StaticTable.from_metadata(str(commit.path))

    def described(self, commit: Commit) -> tuple[str, str]:
        snapshot = self._table.current_snapshot()
        if snapshot is None or snapshot.summary is None:
            return f"version {commit.number}", ""
        said = snapshot.summary
        return f"snapshot {snapshot.snapshot_id}", writer_of(said.operation.value, said.additional_properties)


def writer_of(operation: str, said: Mapping[str, str]) -> str:
    """Return what a snapshot's summary says of its writer: the operation, the program, and the number of its batch."""
    program = [f"by {said['engine-name']} {said.get('engine-version', '')}".rstrip()] if "engine-name" in said else []
    batch = [f"batch {said[BATCH]} of {said.get(QUERY, 'a query')}"] if BATCH in said else []
    return ", ".join([" ".join([operation, *program]), *batch])


def newest_metadata(folder: Path) -> Path | None:
    found = metadata_files(folder)
    return found[-1].path if found else None


def metadata_files(folder: Path) -> list[Commit]:
    """Return the files of all versions, oldest first; a commit is the appearance of the next one."""
    numbered = ((NUMBER.fullmatch(path.name), path) for path in folder.glob("*.metadata.json"))
    return sorted(Commit(int(found[1] or found[2]), path) for found, path in numbered if found)
