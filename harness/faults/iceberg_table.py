"""Commits of ours to an Iceberg table of a Hadoop catalog. pyiceberg makes the new metadata; it has no such catalog.

A commit is the appearance of the next `vN.metadata.json`. A hard link fails if it exists, so that one of two writers
wins.
"""

from __future__ import annotations

import os
import re
import uuid
from pathlib import Path
from typing import Any

from harness.faults.strike import CannotStrikeError
from harness.results.iceberg import newest_metadata

VERSION = re.compile(r"v(\d+)\.metadata\.json")


def table_at(folder: Path) -> Any:
    """Return the table's current version as an object of pyiceberg that can commit."""
    from pyiceberg.catalog.noop import NoopCatalog
    from pyiceberg.exceptions import CommitFailedException
    from pyiceberg.io import FileIO
    from pyiceberg.serializers import ToOutputFile
    from pyiceberg.table import CommitTableResponse, StaticTable, Table
    from pyiceberg.table.update import update_table_metadata

    newest = newest_metadata(folder / "metadata")
    found = VERSION.fullmatch(newest.name) if newest else None
    if newest is None or found is None:
        raise CannotStrikeError("only the table's own catalog can commit to it; a Hadoop catalog has none")
    following = newest.with_name(f"v{int(found[1]) + 1}.metadata.json")

    class Folder(NoopCatalog):
        """The catalog that a folder is."""

        def commit_table(self, table: Table, requirements: Any, updates: Any) -> CommitTableResponse:
            for each in requirements:
                each.validate(table.metadata)
            made = update_table_metadata(table.metadata, updates, metadata_location=str(newest))
            part = newest.with_name(f"{uuid.uuid4()}.metadata.json")
            ToOutputFile.table_metadata(made, _io(table).new_output(str(part)))
            try:
                os.link(part, following)
            except FileExistsError:
                raise CommitFailedException(f"{following.name} exists: another writer was first") from None
            finally:
                part.unlink()
            return CommitTableResponse(metadata=made, metadata_location=str(following))

    def _io(table: Table) -> FileIO:
        return table.io

    table = StaticTable.from_metadata(str(newest))
    table.catalog = Folder("streamgauge")
    return table
