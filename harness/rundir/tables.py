"""The tables of a run: the columns that each must have, and their reader.

pyarrow is imported where it is used: the import is slow, and many commands read no table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.rundir.missing_evidence import MissingEvidence

if TYPE_CHECKING:
    import pyarrow as pa


def _columns(kind: str, names: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), kind)


# The columns that judging requires of each table.
TABLES: Mapping[str, Mapping[str, str]] = {
    "log.parquet": _columns("int", "partition offset event_id kind event_time_ms"),
    "observed.parquet": _columns("text", "key field value kind"),
    "observed-after-stop.parquet": _columns("text", "key field value kind"),
    "table-files.parquet": _columns("int", "bytes rows") | _columns("text", "partition"),
    "states.parquet": _columns("int", "number") | _columns("text", "key field value"),
    "samples.parquet": _columns("int", "at_us campaign window_ms count"),
    "sends.parquet": _columns("int", "server slot_lo slot_hi intended_us sent_us finished_us sent acked"),
}


@dataclass(frozen=True)
class LongTable:
    """A table of a run that may be larger than memory, with the interface of an Arrow table.

    It is read again at each access. If it is torn, or has unexpected content, the access raises MissingEvidence.
    """

    path: Path
    expected: Mapping[str, str]  # the columns that readers rely on, with their types
    selected: tuple[str, ...] | None = None  # None: all

    def __post_init__(self) -> None:
        """Check the columns at once, before a reader needs them."""
        self._refuse(self.schema.empty_table())

    @cached_property
    def schema(self) -> pa.Schema:
        import pyarrow as pa
        import pyarrow.parquet as pq

        with self._readable():
            schema = pq.read_schema(self.path)
            return schema if self.selected is None else pa.schema([schema.field(name) for name in self.selected])

    def select(self, names: Sequence[str]) -> LongTable:
        return replace(self, selected=tuple(names))

    @cached_property
    def num_rows(self) -> int:
        import pyarrow.parquet as pq

        with self._readable():
            return int(pq.read_metadata(self.path).num_rows)

    def column(self, name: str) -> Any:
        return self.select([name]).table().column(name)

    def table(self) -> pa.Table:
        """Read the whole table."""
        import pyarrow.parquet as pq

        with self._readable():
            table = pq.read_table(self.path, columns=self.schema.names)
            table.validate(full=True)
        self._refuse(table)
        return table

    def to_batches(self, *, max_chunksize: int) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        with self._readable(), pq.ParquetFile(self.path) as file:
            for group in range(file.num_row_groups):  # Arrow reads far ahead in more than one
                for batch in file.iter_batches(max_chunksize, row_groups=[group], columns=self.schema.names):
                    batch.validate(full=True)
                    self._refuse(pa.Table.from_batches([batch]))
                    yield batch

    def _refuse(self, rows: pa.Table) -> None:
        """Raise MissingEvidence if the rows lack an expected column or type."""
        relied_on = {name: kind for name, kind in self.expected.items() if name in (self.selected or self.expected)}
        if wrong := [*_unlike(rows, relied_on)]:
            raise MissingEvidence(f"{self.path} is invalid: {'; '.join(wrong)}")

    @contextmanager
    def _readable(self) -> Iterator[None]:
        import pyarrow as pa

        try:
            yield
        except (OSError, pa.ArrowException, ValueError) as error:
            raise MissingEvidence(f"{self.path} is torn: {error}") from None


def _unlike(table: pa.Table, columns: Mapping[str, str]) -> Iterator[str]:
    """An empty table may have columns without a type, because it had no value to set one."""
    for name, kind in columns.items():
        if name not in table.column_names:
            yield f"it has no column {name!r}"
        elif table.num_rows and (not _is(kind, table.schema.field(name).type) or table.column(name).null_count):
            yield f"column {name!r} is not all of type {kind}"


def _is(kind: str, type_: pa.DataType) -> bool:
    from pyarrow import types

    allowed = {"int": types.is_integer(type_), "text": types.is_string(type_) or types.is_large_string(type_)}
    return bool(allowed[kind])
