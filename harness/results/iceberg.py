"""`iceberg:TABLE`: an Iceberg table in the folder that the job's run config names, such as one of a Hadoop catalog."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.results.base import ResultLocation
from harness.results.redis_scan import UnreadableError
from harness.results.table_files import FileTable, TableFile, local

# A Hadoop catalog counts its versions; other catalogs add a random part. Both write a file under another name first.
NUMBER = re.compile(r"(?:v(\d+)|(\d{5})-[0-9a-f-]{36})(?:\.gz)?\.metadata\.json")


class Iceberg(FileTable):
    form = "iceberg:TABLE"

    def __init__(self, location: ResultLocation) -> None:
        super().__init__(location)
        self._metadata: Path | None = None
        self._table: Any = None

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
        for task in self._table.scan().plan_files():
            if task.delete_files:
                raise UnreadableError(
                    f"The Iceberg table {self.path} has files with deleted rows, which this reader does not apply. Let "
                    "the job write with 'write.merge.mode' = 'copy-on-write'."
                )
            yield TableFile(local(task.file.file_path))


def newest_metadata(folder: Path) -> Path | None:
    """Return the file of the current version; a commit is the appearance of the next one."""
    numbered = ((NUMBER.fullmatch(path.name), path) for path in folder.glob("*.metadata.json"))
    return max(((int(found[1] or found[2]), path) for found, path in numbered if found), default=(0, None))[1]
