"""Tables that a test writes as other programs do: one class for each kind, all with the same two verbs."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from harness.engines import environments
from harness.engines.manifest import load
from harness.model import SqlAddress
from harness.results.table_files import local
from harness.services import postgresql

NAME, NAMESPACE = "counts", "shop"


@contextmanager
def readers_of(*engines: str) -> Iterator[None]:
    """Let the packages that read the tables of these engines be imported."""
    folders = [str(each) for name in engines for each in environments.prepare(load(name), print).packages]
    sys.path += folders
    yield
    for each in folders:
        sys.path.remove(each)


class Made(ABC):
    """A table that is added to, and from which the last addition can be taken back, each in one commit."""

    results = ""  # as a manifest says it

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.parts: list[pa.Table] = []

    def add(self, rows: pa.Table) -> None:
        self.parts.append(rows)
        self._append(rows)

    def take_back(self) -> None:
        self.parts.pop()
        self._replace(pa.concat_tables(self.parts))

    @abstractmethod
    def _append(self, rows: pa.Table) -> None: ...

    @abstractmethod
    def _replace(self, rows: pa.Table) -> None: ...


class MadeDelta(Made):
    results = f"delta:{NAME}"

    def _append(self, rows: pa.Table) -> None:
        self._write(rows, "append")

    def _replace(self, rows: pa.Table) -> None:
        self._write(rows, "overwrite")

    def _write(self, rows: pa.Table, mode: Any) -> None:
        from deltalake import write_deltalake

        write_deltalake(self.folder / NAME, rows, mode=mode)


class MadeIceberg(Made):
    results = f"iceberg:{NAMESPACE}/{NAME}"

    def _append(self, rows: pa.Table) -> None:
        self._opened(rows).append(rows)

    def _replace(self, rows: pa.Table) -> None:
        self._opened(rows).overwrite(rows)

    def _opened(self, rows: pa.Table) -> Any:
        catalog = folder_catalog()(self.folder)
        place = self.folder / NAMESPACE / NAME
        return catalog.load_table(place) if place.exists() else catalog.create_table(place, rows.schema)


@cache
def folder_catalog() -> Any:
    """Return a catalog that is a folder: its newest file of metadata is the table."""
    from pyiceberg.catalog import MetastoreCatalog
    from pyiceberg.catalog.noop import NoopCatalog
    from pyiceberg.table import CommitTableResponse, Table

    class Folder(NoopCatalog, MetastoreCatalog):  # type: ignore[misc]
        def __init__(self, folder: Path) -> None:
            MetastoreCatalog.__init__(self, "folder", warehouse=str(folder))

        def load_table(self, place: Any) -> Any:
            from pyiceberg.table import StaticTable

            newest = max((Path(place) / "metadata").glob("*.metadata.json"))
            static = StaticTable.from_metadata(str(newest))
            return Table((NAMESPACE, NAME), static.metadata, str(newest), static.io, self)

        def create_table(self, place: Any, schema: Any) -> Any:
            staged = self._create_staged_table((NAMESPACE, NAME), schema, str(place))
            self._written(staged)
            return self.load_table(place)

        def commit_table(self, table: Any, requirements: Any, updates: Any) -> Any:
            current = self.load_table(table.metadata.location)
            staged = self._update_and_stage_table(current, (NAMESPACE, NAME), requirements, updates)
            self._written(staged)
            return CommitTableResponse(metadata=staged.metadata, metadata_location=staged.metadata_location)

        def _written(self, staged: Any) -> None:
            """Write the metadata under another name first, as a Hadoop catalog does."""
            half = f"{staged.metadata_location}.half"
            self._write_metadata(staged.metadata, staged.io, half)
            Path(local(half)).rename(local(staged.metadata_location))

    return Folder


class MadeParquet(Made):
    results = f"parquet:{NAME}"

    def _append(self, rows: pa.Table) -> None:
        place = self.folder / NAME
        place.mkdir(parents=True, exist_ok=True)
        parquet.write_table(rows, place / "_half")
        (place / "_half").rename(place / f"{len(self.parts)}.parquet")

    def _replace(self, rows: pa.Table) -> None:
        (self.folder / NAME / f"{len(self.parts) + 1}.parquet").unlink()


class MadeSql(Made):
    results = f"sql:{NAME}"
    address: SqlAddress

    def _append(self, rows: pa.Table) -> None:
        self._write(rows, "")

    def _replace(self, rows: pa.Table) -> None:
        self._write(rows, f"DELETE FROM {NAME}")

    def _write(self, rows: pa.Table, first: str) -> None:
        columns = ", ".join(f'"{field.name}" {SQL_TYPES[field.type.id]}' for field in rows.schema)
        values = [tuple(row.values()) for row in rows.to_pylist()]
        with postgresql.connect(self.address) as connection, connection.transaction():
            connection.execute(f"CREATE TABLE IF NOT EXISTS {NAME} ({columns})")
            if first:
                connection.execute(first)
            marks = ", ".join("%s" for _ in rows.schema)
            connection.cursor().executemany(f"INSERT INTO {NAME} VALUES ({marks})", values)


SQL_TYPES = {
    pa.string().id: "text",
    pa.int64().id: "bigint",
    pa.float64().id: "double precision",
    pa.decimal128(20, 1).id: "numeric",
}
