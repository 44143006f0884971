"""`delta:TABLE`: a Delta table in the folder that the job's run config names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from harness.results.base import ResultLocation
from harness.results.redis_scan import UnreadableError
from harness.results.table_files import FileTable, TableFile

PARTITION = "partition."  # how deltalake names a column that is in the place of a file
# What a reader must understand. With others, the files alone do not show the rows.
UNDERSTOOD = frozenset({"timestampNtz", "v2Checkpoint", "vacuumProtocolCheck", "typeWidening"})


class Delta(FileTable):
    form = "delta:TABLE"

    def __init__(self, location: ResultLocation) -> None:
        super().__init__(location)
        self._table: Any = None

    def version(self) -> object:
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError, TableNotFoundError

        try:
            if self._table is None:
                self._table = DeltaTable(str(self.path))
            else:
                self._table.update_incremental()
        except TableNotFoundError:
            return None
        except DeltaError as error:
            self._table = None
            raise UnreadableError(
                f"The Delta table {self.path} can't be read: {' '.join(str(error).split())}."
            ) from None
        self._refuse_what_it_needs()
        return self._table.version()

    def files(self) -> Iterator[TableFile]:
        import pyarrow as pa

        for action in pa.table(self._table.get_add_actions(flatten=True)).to_pylist():
            partition = tuple(
                (name.removeprefix(PARTITION), value) for name, value in action.items() if name.startswith(PARTITION)
            )
            yield TableFile(str(self.path / unquote(action["path"])), partition)

    def _refuse_what_it_needs(self) -> None:
        protocol = self._table.protocol()
        unknown = sorted(set(protocol.reader_features or ()) - UNDERSTOOD)
        if unknown:
            raise UnreadableError(
                f"The Delta table {self.path} needs readers that understand {', '.join(unknown)}, and this one does "
                "not. Let the job write without, such as delta.enableDeletionVectors = false."
            )
