"""The files of the table at the end of a run: how many in each partition, and how large."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from statistics import median

from harness.judging.stored_run import StoredRun
from harness.measuring.measurement import Partition, TableLayout

FILES = "table-files.parquet"
SMALL_BYTES = 1 << 20  # reading takes longer to open such a file than to read it


def of_run(run: StoredRun) -> TableLayout | None:
    """Return None if the results are in no files."""
    partitions = tuple(partitions_of(run))
    if not partitions:
        return None
    sizes = run.store.read_table(FILES).column("bytes").to_pylist()
    return TableLayout(
        files=len(sizes),
        partitions=len(partitions),
        most_in_one=max(each.files for each in partitions),
        small=sum(size < SMALL_BYTES for size in sizes),
        bytes=sum(sizes),
        smallest_bytes=min(sizes),
        median_bytes=round(median(sizes)),
        largest_bytes=max(sizes),
        median_rows=round(median(run.store.read_table(FILES).column("rows").to_pylist())),
    )


def partitions_of(run: StoredRun) -> Iterator[Partition]:
    """Yield the partitions in the order of their names."""
    if not run.store.has(FILES):
        return
    rows = sorted(run.store.read_table(FILES).to_pylist(), key=lambda row: str(row["partition"]))
    for name, some in groupby(rows, lambda row: str(row["partition"])):
        files = [*some]
        sizes = [row["bytes"] for row in files]
        total = sum(row["rows"] for row in files)
        yield Partition(name, len(files), total, min(sizes), round(median(sizes)), max(sizes))
