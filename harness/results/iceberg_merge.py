"""The rows of an Iceberg table some of whose files hold deleted rows (merge-on-read), as Flink's upserts write them.

A row is deleted by its values, if it is older than the delete, or by its place: a file and a position in it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

# Columns that stand beside those of the table. The last two are named as in a file of deleted places.
SEQUENCE, PATH, POSITION = "sequence of the commit", "file_path", "pos"
NEWEST = f"{SEQUENCE}_max"


class Entry(NamedTuple):
    """A file of a version, and the number of the commit that added it."""

    path: str
    sequence: int


class Deletes(NamedTuple):
    """A file of deleted rows. `columns` have the values that name a row; none: it is named by its place."""

    entry: Entry
    columns: tuple[str, ...]


def numbered(table: Any, entry: Entry) -> Any:
    """Add to the rows of a data file what deletes ask for."""
    import pyarrow as pa

    count = table.num_rows
    table = table.append_column(SEQUENCE, pa.repeat(pa.scalar(entry.sequence, pa.int64()), count))
    table = table.append_column(PATH, pa.repeat(entry.path, count))
    return table.append_column(POSITION, pa.array(range(count), pa.int64()))


def alive(rows: Any, deleted: Mapping[Deletes, Any]) -> Any:
    """Return the rows that are not deleted, of numbered rows and the content of the files of deletes."""
    import pyarrow as pa

    alike: dict[tuple[str, ...], list[Any]] = defaultdict(list)
    for each, table in deleted.items():
        keys = each.columns or (PATH, POSITION)
        # A place is deleted whenever that was said. A value may have been written again since.
        sequence = each.entry.sequence if each.columns else 2**63 - 1
        stamps = pa.repeat(pa.scalar(sequence, pa.int64()), table.num_rows)
        alike[keys].append(table.select(keys).append_column(SEQUENCE, stamps))
    for keys, tables in alike.items():
        rows = _without(rows, keys, tables)
    return rows


def _without(rows: Any, keys: Sequence[str], tables: Sequence[Any]) -> Any:
    import pyarrow as pa
    from pyarrow import compute

    kinds = pa.schema([rows.schema.field(name) for name in keys] + [(SEQUENCE, pa.int64())])
    newest = pa.concat_tables([each.cast(kinds) for each in tables]).group_by([*keys]).aggregate([(SEQUENCE, "max")])
    found = rows.join(newest, keys=[*keys], join_type="left outer")
    is_older = compute.less(found[SEQUENCE], found[NEWEST])
    return found.filter(compute.invert(compute.fill_null(is_older, fill_value=False))).drop_columns([NEWEST])
