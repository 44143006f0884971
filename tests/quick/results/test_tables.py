"""Rows of tables as cells: what is no cell is named, whatever a table holds."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from harness.model import KafkaAddress
from harness.results import iceberg, iceberg_merge, table_files
from harness.results.base import ResultLocation
from harness.results.columns import Columns, number_of
from harness.results.iceberg_merge import Deletes, Entry
from harness.results.parquet import Parquet
from harness.results.redis_scan import HASH, NO_RESULT, Row, UnreadableError
from harness.util.clock import Clock
from harness.util.integers import parse_int64
from tests.quick.cases import ANY
from workloads.base import NULL
from workloads.text_values import text_value

NAMES = ["a", "b"]
MANIFEST = replace(ANY, results="parquet:counts", columns={"campaign": "id", "opens": "since", "count": "views"})
RIDES = [{"city": "Ulm", "value": "trips"}, {"city": "Ulm", "value": "max"}, {"city": "Bonn", "value": "trips"}]


def location(folder: Path = Path(), **described) -> ResultLocation:
    return ResultLocation(
        None,
        KafkaAddress(""),
        "",
        NAMES,
        {},
        10_000,
        10_000,
        0,
        replace(MANIFEST, **described),
        Path(),
        Path(),
        Clock(),
        folder=folder,
    )


def cells(*rows, place: ResultLocation | None = None) -> list[Row]:
    columns = Columns(place or location())
    return [*columns.rows((f"row {number}", row) for number, row in enumerate(rows, 1))]


def test_a_row_is_a_cell_by_the_names_of_its_columns():
    noon = datetime(1970, 1, 1, 0, 0, 20, tzinfo=UTC)

    assert cells({"campaign": "a", "opens": 10_000, "count": 3}, {"campaign": "b", "opens": noon, "count": 4}) == [
        Row("a", "10000", "3", HASH),
        Row("b", "20000", "4", HASH),
    ]


def test_a_row_of_a_question_has_a_cell_for_each_of_its_values():
    asked = replace(location(), keys=["trips:Ulm", "max:Ulm", "trips:Bonn"], parts=RIDES)
    rows = {"city": "Ulm", "end": 20_000, "trips": 3, "max": 7}, {"city": "Kiel", "end": 20_000, "trips": 1}

    assert cells(*rows, place=asked) == [
        Row("trips:Ulm", "10000", "3", HASH),
        Row("max:Ulm", "10000", "7", HASH),
        Row("Kiel", "10000", "1", HASH),
    ]


def of_events(folder: Path = Path(), **described) -> ResultLocation:
    names = "outputs", "hour", "kind"
    parts = [{"value": name} for name in names]
    place = location(folder, **{"columns": {}, **described})
    return replace(place, keys=names, parts=parts, number="event_id", length_ms=None)


def test_rows_of_events_are_counted_and_may_hold_texts_and_null(tmp_path):
    written(tmp_path, "hour=2026-11-27 10%3A00%3A10/1.parquet", event_id=[1, 2], kind=["a", None])
    written(tmp_path, "hour=__HIVE_DEFAULT_PARTITION__/2.parquet", event_id=[3, 1], kind=["7", "b"])
    hour = str(int(datetime(2026, 11, 27, 10, 0, 10, tzinfo=UTC).timestamp() * 1000))

    assert sorted(Parquet(of_events(tmp_path)).rows()) == [
        Row("hour", "1", str(NULL), HASH),
        Row("hour", "1", hour, HASH),  # two rows of an event that differ
        Row("hour", "2", hour, HASH),
        Row("hour", "3", str(NULL), HASH),
        *sorted(Row("kind", "1", str(text_value(name)), HASH) for name in "ab"),
        Row("kind", "2", str(NULL), HASH),
        Row("kind", "3", "7", HASH),
        Row("outputs", "1", "2", HASH),
        Row("outputs", "2", "1", HASH),
        Row("outputs", "3", "1", HASH),
    ]


def test_a_row_without_an_event_is_named_and_half_a_number_stands_in_its_cell():
    (found,) = cells({"hour": 0, "event_id": None, "kind": "a"}, place=of_events())

    assert found.kind == NO_RESULT
    assert Row("kind", "1", "1.5", HASH) in cells({"hour": 0, "event_id": 1, "kind": 1.5}, place=of_events())


def test_a_row_of_events_needs_no_column_that_counts():
    columns = Columns(of_events())

    assert columns.chosen(["event_id", "hour", "kind", "more"]) == ("event_id", "hour", "kind")
    assert "columns event_id, hour, kind are needed" in columns.missing(["id"]).replace("window or ", "")


def test_a_listed_file_of_a_partition_is_found_by_its_uri(tmp_path):
    file = written(tmp_path, "hour=2026-11-27 10%3A00%3A10/1.parquet", event_id=[1], kind=["a"])
    folder = tmp_path / "counts" / "_spark_metadata"
    folder.mkdir()
    (folder / "0").write_text("v1\n" + json.dumps({"path": file.as_uri()}))

    assert Row("outputs", "1", "1", HASH) in Parquet(of_events(tmp_path)).rows()


@pytest.mark.parametrize(
    "value", [None, 1.5, 2.0, Decimal("1.5"), Decimal("NaN"), True, date(2026, 1, 1), "x", "007", b"1"]
)
def test_what_is_no_whole_number_stays_as_it_is_in_its_cell(value):
    text = "NULL" if value is None else str(value)

    assert cells({"campaign": "a", "opens": 0, "count": value}) == [Row("a", "0", text, HASH)]
    assert parse_int64(text) is None


@pytest.mark.parametrize("row", [{"campaign": None, "opens": 0}, {"campaign": "a", "opens": None}])
def test_a_row_without_a_key_or_a_window_is_named(row):
    (found,) = cells({**row, "count": 1})

    assert (found.key, found.kind) == ("row 1", NO_RESULT)


@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_every_whole_number_of_64_bits_is_one_in_each_type(number):
    assert number_of(number) == number_of(Decimal(number)) == number_of(str(number)) == str(number)


@given(st.datetimes(datetime(1971, 1, 1), datetime(2100, 1, 1)), st.integers(-12, 12))
def test_a_time_is_the_same_moment_in_each_zone(moment, hours):
    moment = moment.replace(microsecond=moment.microsecond // 1000 * 1000)
    there = moment.replace(tzinfo=UTC).astimezone(timezone(timedelta(hours=hours)))

    assert number_of(moment) == number_of(there)
    assert datetime.fromtimestamp(int(number_of(moment) or "") / 1000, UTC).replace(tzinfo=None) - moment < timedelta(
        milliseconds=1
    )


def test_a_time_between_two_milliseconds_is_no_window():
    assert number_of(datetime(2026, 1, 1, microsecond=1, tzinfo=UTC)) is None


def written(folder: Path, name: str, **columns) -> Path:
    file = folder / "counts" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pa.table(columns), file)
    return file


def test_files_of_a_folder_are_read_once_and_added_up(tmp_path, monkeypatch):
    source = Parquet(location(tmp_path, sums=True))
    assert source.rows() == []
    written(tmp_path, "1.parquet", id=["a"], since=[0], views=[3])
    assert source.rows() == [Row("a", "0", "3", HASH)]
    reads = []
    whole = table_files.FileTable._read

    def counting(own, file):
        reads.append(file.path)
        return whole(own, file)

    monkeypatch.setattr(table_files.FileTable, "_read", counting)
    new = written(tmp_path, "day=2/2.parquet", id=["a", "b"], since=[0, 0], views=[4, 1])

    assert sorted(source.rows()) == [Row("a", "0", "7", HASH), Row("b", "0", "1", HASH)]
    assert source.rows() == source.rows()
    assert reads == [str(new)]


def test_two_rows_of_a_cell_stay_two_unless_they_are_to_be_added(tmp_path):
    written(tmp_path, "1.parquet", id=["a", "a"], since=[0, 0], views=[3, 3])

    assert Parquet(location(tmp_path)).rows() == 2 * [Row("a", "0", "3", HASH)]


def test_what_is_no_cell_is_named_in_a_sum_too(tmp_path):
    written(tmp_path, "1.parquet", id=["a", None, "a"], since=[0, 0, 0], views=[3, 1, None])

    stray, cell = Parquet(location(tmp_path, sums=True)).rows()
    assert (stray.kind, stray.value) == (NO_RESULT, '{"campaign": "NULL", "opens": "0", "count": "1"}')
    assert cell == Row("a", "0", "NULL", HASH), "a sum with a part that is unknown is unknown"


def test_a_column_may_be_in_the_name_of_a_folder(tmp_path):
    written(tmp_path, "id=a%20b/1.parquet", since=[0], views=[3])

    assert Parquet(location(tmp_path)).rows() == [Row("a b", "0", "3", HASH)]


def test_what_spark_has_not_finished_is_not_read(tmp_path):
    written(tmp_path, "_temporary/0/1.parquet", id=["a"], since=[0], views=[3])
    written(tmp_path, ".hidden.parquet", id=["a"], since=[0], views=[3])

    assert Parquet(location(tmp_path)).rows() == []
    written(tmp_path, "_day=1/1.parquet", id=["a"], since=[0], views=[3])
    assert len(Parquet(location(tmp_path)).rows()) == 1


def test_sparks_own_list_says_which_files_count(tmp_path):
    first = written(tmp_path, "1.parquet", id=["a"], since=[0], views=[3])
    second = written(tmp_path, "2.parquet", id=["b"], since=[0], views=[4])
    written(tmp_path, "3.parquet", id=["a"], since=[0], views=[3])
    listed = tmp_path / "counts" / "_spark_metadata"
    listed.mkdir()
    line = '{{"path":"file://{}","action":"add"}}\n'.format
    (listed / "0").write_text("v1\n" + line(tmp_path / "gone.parquet"))
    (listed / "1.compact").write_text("v1\n" + line(first))
    (listed / "2").write_text("v1\n" + line(second))
    (listed / ".3.tmp").write_text("half")

    assert [row.key for row in Parquet(location(tmp_path)).rows()] == ["a", "b"]


def test_columns_that_are_missing_are_named_with_those_that_are_there(tmp_path):
    written(tmp_path, "1.parquet", id=["a"], start=[0], views=[3])

    with pytest.raises(UnreadableError, match=r"columns id, .*since.*, views are .* there are id, start, views"):
        Parquet(location(tmp_path)).rows()


def test_the_newest_version_of_an_iceberg_table_has_the_highest_number(tmp_path):
    assert iceberg.metadata_files(tmp_path / "none") == []
    some = uuid.uuid4()
    for name in ("v9.metadata.json", "v10.metadata.json", f"{some}.metadata.json", "v12.metadata.json.part"):
        (tmp_path / name).touch()
    assert [number for number, _ in iceberg.metadata_files(tmp_path)] == [9, 10]
    (tmp_path / f"00011-{some}.metadata.json").touch()

    assert iceberg.metadata_files(tmp_path)[-1] == (11, tmp_path / f"00011-{some}.metadata.json")


def data_of(path: str, sequence: int, **columns: list[object]) -> pa.Table:
    return iceberg_merge.numbered(pa.table(columns), Entry(path, sequence))


def alive(*rows: pa.Table, **deleted: tuple[Deletes, pa.Table]) -> list[tuple[str, int]]:
    found = iceberg_merge.alive(pa.concat_tables(rows), dict(deleted.values()))
    return sorted((row["id"], row["views"]) for row in found.to_pylist())


def test_a_row_of_iceberg_is_deleted_by_its_values_if_it_is_older():
    rows = [data_of("a", 1, id=["x", "y"], views=[1, 2]), data_of("b", 2, id=["x"], views=[3])]
    by_value = Deletes(Entry("d", 2), ("id",)), pa.table({"id": ["x"]})

    assert alive(*rows, first=by_value) == [("x", 3), ("y", 2)], "not that of the same commit"


def test_of_two_deletes_of_a_value_the_newer_one_counts():
    rows = [data_of("a", 1, id=["x"], views=[1]), data_of("b", 2, id=["x"], views=[2])]
    older = Deletes(Entry("d", 2), ("id",)), pa.table({"id": ["x"]})
    newer = Deletes(Entry("e", 3), ("id",)), pa.table({"id": ["x"]})

    assert alive(*rows, newer=newer, older=older) == []


def test_a_row_of_iceberg_is_deleted_by_its_place_in_the_same_commit_too():
    rows = [data_of("a", 1, id=["x", "x"], views=[1, 2]), data_of("b", 1, id=["x"], views=[3])]
    by_place = Deletes(Entry("d", 1), ()), pa.table({"file_path": ["a"], "pos": [0]})

    assert alive(*rows, first=by_place) == [("x", 2), ("x", 3)]
