"""The table family on real tables of Delta and Iceberg: each lands with its proof, and no row changes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from harness.engines import environments
from harness.engines.manifest import load
from harness.faults import table
from harness.faults.base import Fault
from harness.faults.iceberg_table import table_at
from harness.faults.registry import create, parse
from harness.faults.run_at_poll import Field, Moment
from harness.model import FaultReport, KafkaAddress
from harness.results.table_commits import LOGS
from harness.util.wait import wait_until
from tests.quick.cases import SCRIPTED, SPEC

MANIFEST = replace(SCRIPTED, evidence="spark-checkpoint")
COLUMNS = pa.schema([pa.field("campaign", pa.string()), pa.field("opens", pa.int64()), pa.field("count", pa.int64())])
DELTA, ICEBERG = "delta:counts", "iceberg:counts"


@contextmanager
def packages(engine: str) -> Iterator[None]:
    folders = [str(each) for each in environments.prepare(load(engine), print).packages]
    sys.path += folders
    yield
    for each in folders:
        sys.path.remove(each)


@dataclass
class Table:
    """A table that a job writes, two columns at a time."""

    folder: Path
    results: str
    append: Callable[[], None]
    rows: Callable[[], int]

    def moment(self, now_ms: int) -> Moment:
        anything: Any = None
        field = Field(
            None, None, KafkaAddress("nobody"), "topic", anything, [], lambda _: None, table=self.folder / "counts"
        )
        engine: Any = SimpleNamespace(disarm=lambda: None, starts=1)
        return Moment(now_ms, 1, engine, None, 1000, field)

    def fault(self, text: str) -> Fault:
        asked = replace(SPEC, engine="scripted", sink="default", fault=parse(f"{text}@now"))
        return create(asked, replace(MANIFEST, results=self.results))

    def struck(self, text: str) -> FaultReport:
        fault, times = self.fault(text), iter(range(1000, 100_000, 50))

        def is_over() -> bool:
            fault.poll(self.moment(next(times)))
            return fault.over()

        wait_until(is_over, deadline_s=60, what=f"{text} to be over", state=lambda: fault.reports()[0].proof)
        return fault.reports()[0]


def some() -> pa.Table:
    return pa.table({"campaign": ["a", "b"], "opens": [0, 0], "count": [3, 4]}, schema=COLUMNS)


@pytest.fixture
def delta(tmp_path):
    with packages("spark-delta"):
        from deltalake import DeltaTable, write_deltalake

        place = tmp_path / "counts"
        made = Table(
            tmp_path,
            DELTA,
            lambda: write_deltalake(place, some(), mode="append"),
            lambda: DeltaTable(place).to_pyarrow_table().num_rows,
        )
        made.append()
        made.append()
        yield made


@pytest.fixture
def iceberg(tmp_path):
    with packages("spark-iceberg"):
        from pyiceberg.io import load_file_io
        from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
        from pyiceberg.schema import Schema
        from pyiceberg.serializers import ToOutputFile
        from pyiceberg.table.metadata import new_table_metadata
        from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
        from pyiceberg.types import LongType, NestedField, StringType

        place = tmp_path / "counts"
        (place / "metadata").mkdir(parents=True)
        types = {"campaign": StringType(), "opens": LongType(), "count": LongType()}
        schema = Schema(*(NestedField(number, name, kind) for number, (name, kind) in enumerate(types.items(), 1)))
        empty = new_table_metadata(schema, UNPARTITIONED_PARTITION_SPEC, UNSORTED_SORT_ORDER, str(place))
        first = str(place / "metadata" / "v1.metadata.json")
        ToOutputFile.table_metadata(empty, load_file_io(location=first).new_output(first))
        made = Table(
            tmp_path,
            ICEBERG,
            lambda: table_at(place).append(some()),
            lambda: table_at(place).scan().to_arrow().num_rows,
        )
        made.append()
        made.append()
        yield made


TRIED = [
    ("delta", "table-writer(for=500ms)", "from version 1 to version"),
    ("delta", "table-compact", "version 2: 2 files became 1"),
    ("iceberg", "table-compact", "version 4: 2 files became 1"),
    ("iceberg", "table-writer(for=500ms)", "from version 3 to version"),
    ("iceberg", "table-expire", "1 snapshot gone, 1 snapshot left"),
]


@pytest.mark.parametrize(("store", "text", "proof"), TRIED)
def test_each_lands_with_its_proof_and_no_row_changes(request, store, text, proof):
    found = request.getfixturevalue(store)

    report = found.struck(text)

    assert (report.landed, report.healed) == (True, True), report.proof
    assert proof in report.proof
    assert found.rows() == 4
    found.append()
    assert found.rows() == 6, "the job goes on"


def test_a_vacuum_deletes_what_no_version_needs_and_a_full_one_what_is_not_committed(delta):
    orphan = delta.folder / "counts" / "part-00000-orphan.parquet"
    orphan.write_bytes(b"PAR1")
    delta.struck("table-compact")

    report = delta.struck("table-vacuum")

    assert "2 files gone, such as part-" in report.proof
    assert orphan.exists()
    assert "1 file gone, such as part-00000-orphan.parquet" in delta.struck("table-vacuum(mode=full)").proof
    assert delta.rows() == 4


def test_a_commit_that_loses_against_another_is_made_on_top_of_it(iceberg):
    late = table_at(iceberg.folder / "counts")
    iceberg.append()
    late.append(some())

    assert iceberg.rows() == 8
    assert [path.name for path in sorted((iceberg.folder / "counts" / "metadata").glob("v[45]*"))] == [
        "v4.metadata.json",
        "v5.metadata.json",
    ]


def test_a_compaction_of_iceberg_says_that_it_changes_no_row(iceberg):
    from pyiceberg.table.snapshots import Operation

    iceberg.struck("table-compact")
    newest = table_at(iceberg.folder / "counts").current_snapshot()

    assert newest.summary.operation is Operation.REPLACE
    assert (newest.summary["deleted-records"], newest.summary["added-records"]) == ("4", "4")
    log = LOGS["iceberg"](iceberg.folder / "counts")
    assert (compacted := log.newest())
    assert not log.has_rows(compacted)
    iceberg.append()
    assert (appended := log.newest())
    assert log.has_rows(appended)


def test_all_of_the_family_are_tried_here():
    assert {each.name for each in table.KINDS} == {text.partition("(")[0] for _, text, _ in TRIED} | {"table-vacuum"}


@pytest.mark.parametrize(
    ("results", "text", "why"),
    [
        ("sql:counts", "table-writer", "writes its results elsewhere"),
        ("parquet:counts", "table-writer", "a folder of Parquet files has no commits"),
        ("parquet:counts", "table-compact", "a folder of Parquet files has no commits"),
        (ICEBERG, "table-vacuum", "for Iceberg there is table-expire"),
        (DELTA, "table-expire", "for Delta there is table-vacuum"),
    ],
)
def test_a_table_that_can_t_have_one_says_why(results, text, why):
    asked = replace(SPEC, engine="scripted", sink="default", fault=parse(f"{text}@now"))
    (need,) = create(asked, replace(MANIFEST, results=results)).needs

    assert why in need
