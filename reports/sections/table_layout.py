"""The section with the files of the table at the end of the run, and the same in a sentence."""

from __future__ import annotations

from harness.measuring.measurement import TableLayout
from harness.measuring.table_layout import SMALL_BYTES, partitions_of
from harness.util.texts import many
from reports.evidence import Evidence
from reports.page import Section, Table

COLUMNS = ("partition", "files", "rows", "smallest", "median", "largest")
TEXT = (
    "The files of the table's last version. A job that writes a file for each batch and partition makes many small "
    "ones."
)


def section(evidence: Evidence) -> Section | None:
    rows = tuple(
        (
            each.name or "(no partition)",
            f"{each.files:,}",
            f"{each.rows:,}",
            *map(_size, (each.smallest_bytes, each.median_bytes, each.largest_bytes)),
        )
        for each in partitions_of(evidence)
    )
    return Section("table-files", "Files of the table", text=(TEXT,), tables=(Table(COLUMNS, rows),)) if rows else None


def in_words(found: TableLayout) -> str:
    small = "all of them" if found.small == found.files else f"{found.small:,} of them"
    return (
        f"{many(found.files, 'file')} in {many(found.partitions, 'partition')}, up to {found.most_in_one:,} in one, "
        f"{many(found.median_rows, 'row')} and {_size(found.median_bytes)} each (median); {small} below "
        f"{_size(SMALL_BYTES)}"
    )


def _size(size: int) -> str:
    return f"{size / 1024:,.1f} KiB" if size < SMALL_BYTES else f"{size / SMALL_BYTES:,.0f} MiB"
