"""Commits of ours to an Iceberg table of a Hadoop catalog. pyiceberg makes the new metadata; it has no such catalog.

A commit is the appearance of the next `vN.metadata.json`. A hard link fails if that exists, so that one of two writers
wins.
"""

from __future__ import annotations

import os
import re
import uuid
from collections import Counter
from pathlib import Path
from typing import Any

from harness.faults.strike import CannotStrikeError
from harness.results.iceberg import newest_metadata

VERSION = re.compile(r"v(\d+)\.metadata\.json")


def table_at(folder: Path, *, compacts: bool = False) -> Any:
    """Return the table's current version as an object of pyiceberg that can commit. `compacts`: its commits change
    files, and no rows.
    """
    from pyiceberg.catalog.noop import NoopCatalog
    from pyiceberg.exceptions import CommitFailedException
    from pyiceberg.serializers import ToOutputFile
    from pyiceberg.table import CommitTableResponse, StaticTable, Table
    from pyiceberg.table.update import update_table_metadata

    class Folder(NoopCatalog):  # type: ignore[misc]
        """The catalog that a folder is."""

        def load_table(self, identifier: Any) -> Table:
            newest = newest_metadata(folder / "metadata")
            if newest is None or not VERSION.fullmatch(newest.name):
                raise CannotStrikeError("only its own catalog can commit to this table; a Hadoop catalog has none")
            read = StaticTable.from_metadata(str(newest))
            return Table(identifier, read.metadata, str(newest), read.io, self)

        def commit_table(self, table: Table, requirements: Any, updates: Any) -> CommitTableResponse:
            for each in requirements:
                each.validate(table.metadata)
            before = Path(table.metadata_location)
            number = int(before.name.removeprefix("v").partition(".")[0])
            following = before.with_name(f"v{number + 1}.metadata.json")
            if compacts:
                updates = tuple(map(as_replacement, updates))
            made = update_table_metadata(table.metadata, updates, metadata_location=str(before))
            part = before.with_name(f"{uuid.uuid4()}.metadata.json")
            ToOutputFile.table_metadata(made, table.io.new_output(str(part)))
            try:
                os.link(part, following)
            except FileExistsError:
                raise CommitFailedException(f"{following.name} exists: another writer was first") from None
            finally:
                part.unlink()
            return CommitTableResponse(metadata=made, metadata_location=str(following))

    return Folder("streamgauge").load_table(("streamgauge", folder.name))


def as_replacement(update: Any) -> Any:
    """Name a new snapshot as one that replaces files by others with the same rows. pyiceberg knows no such operation;
    other writers do, and only look for their own files then.
    """
    from pyiceberg.table.snapshots import Operation, Summary
    from pyiceberg.table.update import AddSnapshotUpdate

    if not isinstance(update, AddSnapshotUpdate):
        return update
    said = update.snapshot.summary
    summary = Summary(Operation.REPLACE, **(said.additional_properties if said else {}))
    return update.model_copy(update={"snapshot": update.snapshot.model_copy(update={"summary": summary})})


def compact(folder: Path) -> str:
    """Rewrite the files of each partition that has several; return the proof, "" if none has."""
    from pyiceberg.expressions import AlwaysTrue
    from pyiceberg.io.pyarrow import ArrowScan, _dataframe_to_data_files

    table = table_at(folder, compacts=True)
    if table.current_snapshot() is None:
        return ""
    tasks = [task for task in table.scan().plan_files() if not task.delete_files]  # those keep their deleted rows
    often = Counter(task.file.partition for task in tasks)
    small = [task for task in tasks if often[task.file.partition] > 1]
    if not small:
        return ""
    rows = ArrowScan(table.metadata, table.io, table.schema(), AlwaysTrue()).to_table(small)
    large = list(_dataframe_to_data_files(table.metadata, rows, table.io))
    with table.transaction() as transaction, transaction.update_snapshot().overwrite() as commit:
        for task in small:
            commit.delete_data_file(task.file)
        for file in large:
            commit.append_data_file(file)
    made = Path(table.metadata_location).name.partition(".")[0].removeprefix("v")
    return f"version {made}: {len(small):,} files became {len(large):,}"
