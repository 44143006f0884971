"""The files of a table: how many in each partition, and how large."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa

from harness.measuring import table_layout
from harness.results.base import HeldFile
from harness.results.parquet import Parquet
from reports.sections import table_layout as section
from tests.quick.results.test_tables import of_events, written

HOUR = "hour=2026-11-27 10%3A00%3A10"


def stored(*files: HeldFile) -> Any:
    columns = {name: [file[i] for file in files] for i, name in enumerate(HeldFile._fields)}
    store = SimpleNamespace(has=lambda _: bool(files), read_table=lambda _: pa.table(columns))
    return cast(Any, SimpleNamespace(store=store))


def test_a_table_knows_the_files_that_it_has_read(tmp_path):
    first = written(tmp_path, f"{HOUR}/1.parquet", event_id=[1, 2], kind=["a", "b"])
    second = written(tmp_path, "2.parquet", event_id=[3], hour=[0], kind=["a"])
    source = Parquet(of_events(tmp_path))
    assert source.layout() == []
    source.rows()

    sizes = first.stat().st_size, second.stat().st_size
    assert sorted(source.layout()) == [HeldFile("", sizes[1], 1), HeldFile("hour=2026-11-27 10:00:10", sizes[0], 2)]
    first.unlink()
    assert source.layout() == [HeldFile("", sizes[1], 1)]


def test_files_are_summed_up_by_partition():
    run = stored(HeldFile("h=2", 10, 1), HeldFile("h=1", 20, 2), HeldFile("h=2", 2 << 20, 9))
    found = table_layout.of_run(run)

    assert found is not None
    assert (found.files, found.partitions, found.most_in_one, found.small) == (3, 2, 2, 2)
    assert (found.smallest_bytes, found.median_bytes, found.largest_bytes) == (10, 20, 2 << 20)
    assert [(each.name, each.files, each.rows) for each in table_layout.partitions_of(run)] == [
        ("h=1", 1, 2),
        ("h=2", 2, 10),
    ]
    assert section.in_words(found).startswith("3 files in 2 partitions, up to 2 in one, 2 rows and ")
    shown = section.section(run)
    assert shown is not None
    assert [row[:3] for row in shown.tables[0].rows] == [("h=1", "1", "2"), ("h=2", "2", "10")]


def test_results_that_are_no_files_have_no_section():
    assert table_layout.of_run(stored()) is None
    assert section.section(stored()) is None
