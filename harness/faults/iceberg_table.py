"""Commits of ours to an Iceberg table of a Hadoop catalog. pyiceberg makes the new metadata; it has no such catalog.

A commit is the appearance of the next `vN.metadata.json`. A hard link fails if that exists, so that one of two writers
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
