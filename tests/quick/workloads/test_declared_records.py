"""Declared events: drawn, written as JSON or Avro, and read back."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from decimal import Decimal
from io import BytesIO
from typing import Any

import fastavro
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.util.seeded_draws import Lane
from harness.util.toml_reader import MistakeError
from tests.quick.declared import TOML, drawn, relation
from workloads.declared import draws
from workloads.declared.avro_records import AvroRecords, _fits, schema_of
from workloads.declared.declaration import load, unsealed
from workloads.declared.fields import Choice, Fields, Integer, Text, Time, Uuid, Zipf, leaves, read_fields
from workloads.declared.fields import Decimal as FieldOfDecimals
from workloads.declared.json_records import JsonRecords
from workloads.declared.records import Format
from workloads.declared.tables import InRedis, in_kafka, in_redis, read_tables

PARSED = tomllib.loads(TOML, parse_float=Decimal)
FIELDS = read_fields("event.fields", PARSED["event"]["fields"])
EPOCH_MS = 1_763_700_000_000

NAMES = st.lists(st.from_regex(r"[a-z]{1,8}_", fullmatch=True), unique=True, max_size=4)
WORDS = st.lists(st.text(min_size=1, max_size=5).filter(str.strip), min_size=1, max_size=4, unique=True)
LEAF = st.one_of(
    st.builds(lambda of: {"kind": "uuid", "of": of}, st.integers(1, 30)),
    st.builds(lambda words: {"kind": "choice", "values": words}, WORDS),
    st.builds(
        lambda of, quarters: {"kind": "zipf", "of": of, "exponent": Decimal(quarters) / 4},
        st.integers(1, 30),
        st.integers(1, 12),
    ),
    st.builds(
        lambda low, more: {"kind": "integer", "from": low, "to": low + more},
        st.integers(-(2**53), 2**52),
        st.integers(0, 2**31 - 2),
    ),
    st.builds(
        lambda low, more, digits: {
            "kind": "decimal",
            "from": Decimal(low).scaleb(-digits),
            "to": Decimal(low + more).scaleb(-digits),
            "digits": digits,
        },
        st.integers(-(10**9), 10**9),
        st.integers(0, 10**6),
        st.integers(1, 6),
    ),
    st.builds(
        lambda short, more: {"kind": "text", "of": 5, "from": short, "to": short + more},
        st.integers(1, 9),
        st.integers(0, 9),
    ),
)


@st.composite
def declared_fields(draw):
    """Any fields, nested or not, with a time among them."""
    fields = {name: draw(LEAF) for name in draw(NAMES)}
    inner = {name: draw(LEAF) for name in draw(NAMES)}
    if inner:
        fields["inside"] = {"kind": "object", "fields": inner}
    place = draw(st.sampled_from([fields, inner or fields]))
    place["moment"] = {"kind": "time", "as": draw(st.sampled_from(["ms", "iso8601"]))}
    return read_fields("event.fields", fields)


TIMES = st.lists(st.integers(EPOCH_MS - 10**12, EPOCH_MS + 10**12), min_size=1, max_size=20)
FORMATS: dict[str, Callable[[Fields], Format]] = {
    "json": lambda fields: JsonRecords(fields, 1),
    "avro": lambda fields: AvroRecords(fields, 1, None, None),
    "avro of a registry": lambda fields: AvroRecords(fields, 1, None, 77),
}


@pytest.mark.parametrize("form", FORMATS)
@given(fields=declared_fields(), times_ms=TIMES)
def test_what_is_read_is_what_was_written(form, fields, times_ms):
    columns, records = drawn(fields, times_ms), FORMATS[form](fields)

    rows, read = records.read(records.write(columns))

    assert rows.tolist() == list(range(len(times_ms)))
    assert {path: each.tolist() for path, each in read.items()} == {
        path: each.tolist() for path, each in columns.items()
    }


@given(declared_fields(), TIMES)
def test_json_is_what_the_json_of_python_reads(fields, times_ms):
    columns = drawn(fields, times_ms)
    written = [json.loads(value, parse_float=Decimal) for value in JsonRecords(fields, 1).write(columns)]

    relation_rows = relation(fields, columns).drop_columns(["event", "event_id"]).to_pylist()
    assert [_with_times(row, fields) for row in relation_rows] == [_with_times(row, fields) for row in written]


def _with_times(row, fields):
    """Without the time, whose form is another in the relation, and with all numbers as decimals."""
    kept = {name: value for name, value in row.items() if name != "moment"}
    return {
        name: _with_times(value, fields)
        if isinstance(value, dict)
        else Decimal(value)
        if isinstance(value, int)
        else value
        for name, value in kept.items()
    }


@pytest.mark.parametrize("form", FORMATS)
def test_poison_is_no_event_and_neither_is_half_a_record(form):
    records = FORMATS[form](FIELDS)
    [value] = records.write(drawn(FIELDS, [EPOCH_MS]))

    poison = [records.poison(kind, value) for kind in records.poisons]
    halves = [value[:length] for length in range(len(value))]

    assert records.read([*poison, *halves, value + b"}"]).rows.tolist() == []
    assert records.read([None, value, b"", value]).rows.tolist() == [1, 3]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b'"de"', b'"xx"'),
        (b'"pieces": ', b'"pieces": "1", "n": '),
        (b'"amount": ', b'"amount": 1.005, "n": '),
        (b'"amount": ', b'"amount": 1e40, "n": '),
        (b'"ordered_at": "2025', b'"ordered_at": "yesterday'),
        (b'"ordered_at": "2025', b'"ordered_at": "12025'),
        (b'"pieces"', b'"piece"'),
        (b"a", b"\xff"),
    ],
)
def test_a_record_that_does_not_fit_is_no_event_and_costs_no_other(before, after):
    records = JsonRecords(FIELDS, 1)
    values = records.write(drawn(FIELDS, [EPOCH_MS + n for n in range(20)]))
    at = next(row for row, value in enumerate(values) if before in value)

    rows, _ = records.read([value.replace(before, after) if row == at else value for row, value in enumerate(values)])

    assert rows.tolist() == [row for row in range(20) if row != at]


def test_fields_that_nobody_declared_do_not_matter():
    records = JsonRecords(FIELDS, 1)
    [value] = records.write(drawn(FIELDS, [EPOCH_MS]))

    assert records.read([b'{"more": [1, {}], ' + value[1:]]).rows.tolist() == [0]


def test_any_part_of_the_events_is_drawn_as_in_the_whole():
    raw = Lane.of(3, "test").at(np.arange(1000))
    whole, part = draws.content(FIELDS, 9, raw), draws.content(FIELDS, 9, raw[[7, 5, 900]])

    assert {path: each[[7, 5, 900]].tolist() for path, each in whole.items()} == {
        p: e.tolist() for p, e in part.items()
    }


def test_draws_are_spread_as_declared():
    n = 200_000
    found = draws.content(FIELDS, 2, Lane.of(4, "test").at(np.arange(n)))
    shops, countries = np.bincount(found["shop"]), np.bincount(found["place.country"])

    assert countries / n == pytest.approx([0.75, 0.25], abs=0.005)
    assert shops[0] / shops[1] == pytest.approx(2**1.25, rel=0.03)
    assert len(shops) == 20
    assert (found["amount"].min(), found["amount"].max()) == (-2000, 20_000)
    assert np.bincount(found["pieces"])[1:] / n == pytest.approx([1 / 9] * 9, abs=0.005)


def test_fields_of_one_kind_are_drawn_apart():
    found = draws.content(
        {"one": Integer(0, 10**6), "other": Integer(0, 10**6)}, 1, Lane.of(1, "t").at(np.arange(5000))
    )

    assert abs(np.corrcoef(found["one"], found["other"])[0, 1]) < 0.05


@pytest.mark.parametrize("field", [Uuid(1000), Text(1000, 1, 2), Zipf(1000, 4, "")])
def test_no_two_names_are_one(field):
    assert len(set(draws.names(field, 1, "x"))) == 1000


def test_what_is_drawn_is_the_same_on_every_machine():
    """Draws and names of today: a run of today must be judged as it was tomorrow."""
    columns = drawn(FIELDS, [EPOCH_MS, EPOCH_MS + 1])

    assert JsonRecords(FIELDS, 1).write(columns)[0] == GOLDEN


def test_a_table_has_a_row_for_each_value_of_its_field():
    [shops] = read_tables(FIELDS, "tables", PARSED["tables"])
    rows = shops.rows(FIELDS, seed=1)

    assert rows.column_names == ["shop", "region"]
    assert rows.column("shop").to_pylist() == [f"shop-{number}" for number in range(1, 21)]
    assert set(rows.column("region").to_pylist()) == {"north", "south"}
    assert isinstance(shops.place, InRedis)
    assert next(in_redis(shops.place, rows)) == ("shop:shop-1", "", rows.column("region")[0].as_py())
    assert next(in_kafka(rows))[0] == b"shop-1"
    assert json.loads(next(in_kafka(rows))[1]) == rows.to_pylist()[0]


GOLDEN = (
    b'{"buyer": "77a8f24f-100d-40f0-bfd6-4cfc18dee4cf", "shop": "shop-3", "place": {"country": "de"}, '
    b'"pieces": 4, "amount": 166.89, "note": "rbqaqix", "ordered_at": "2025-11-21T04:40:00.000Z"}'
)

AVRO = schema_of(FIELDS)


def other(name, kind):
    fields = [{**each, "type": kind} if each["name"] == name else each for each in AVRO["fields"]]
    return {**AVRO, "fields": fields}


SCHEMAS = {
    "no record": ("string", "a record of the event's fields"),
    "no Avro": ({"type": "recrd"}, "no Avro schema"),
    "a field less": ({**AVRO, "fields": AVRO["fields"][1:]}, "has no field 'buyer'"),
    "a field more": (
        {**AVRO, "fields": [*AVRO["fields"], {"name": "x", "type": "int"}]},
        "'x' in the schema without a",
    ),
    "a text as a number": (other("buyer", "long"), "buyer as 'long'"),
    "a number as a text": (other("pieces", "string"), "a long, or an int"),
    "a decimal as a float": (other("amount", "float"), "a double, or bytes"),
    "a decimal of other digits": (
        other("amount", {"type": "bytes", "logicalType": "decimal", "precision": 18, "scale": 3}),
        "scale 2",
    ),
    "a time of microseconds": (other("ordered_at", {"type": "long", "logicalType": "timestamp-micros"}), "a string"),
    "an object as a map": (other("place", {"type": "map", "values": "string"}), "a record"),
    "an enum that lacks one": (
        other(
            "place",
            {
                "type": "record",
                "name": "place",
                "fields": [{"name": "country", "type": {"type": "enum", "name": "c", "symbols": ["de"]}}],
            },
        ),
        "an enum with all",
    ),
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_that_does_not_fit_is_refused_by_what_does_not(name):
    schema, answer = SCHEMAS[name]

    with pytest.raises(MistakeError) as error:
        AvroRecords(FIELDS, 1, schema, None)

    assert answer in str(error.value)


def test_a_schema_may_be_wider_than_the_event():
    country = {"type": "enum", "name": "c", "symbols": ["de", "fr", "it"]}
    place = {"type": "record", "name": "place", "fields": [{"name": "country", "type": ["null", country]}]}
    schema = other("place", place)
    schema["fields"] = [*schema["fields"], {"name": "more", "type": ["null", "string"], "default": None}]
    records, columns = AvroRecords(FIELDS, 1, schema, 5), drawn(FIELDS, [EPOCH_MS, EPOCH_MS + 1])

    values = records.write(columns)
    rows, read = records.read(values)

    assert rows.tolist() == [0, 1]
    assert read["place.country"].tolist() == columns["place.country"].tolist()
    assert values[0][:5] == b"\0\0\0\0\5"
    event: Any = fastavro.schemaless_reader(BytesIO(values[0][5:]), schema, None)
    assert event["more"] is None


@given(st.lists(st.integers(-(10**15), 10**15), min_size=1), st.integers(1, 6))
def test_a_decimal_may_be_a_double(units, digits):
    """As it mostly is in the schemas that there are."""
    fields: Fields = {"amount": FieldOfDecimals(-(10**15), 10**15, digits), "at": Time("ms")}
    schema = schema_of(fields)
    schema["fields"][0]["type"] = ["null", "double"]
    records = AvroRecords(fields, 1, schema, None)
    columns = {"amount": np.array(units), "at": np.full(len(units), EPOCH_MS)}

    rows, read = records.read(records.write(columns))

    assert len(rows) == len(units)
    assert read["amount"].tolist() == units


@pytest.mark.parametrize("amount", [float("nan"), float("inf"), 1e300, 0.1 + 0.2, 1.005])
def test_a_double_of_more_digits_is_no_event(amount):
    schema = other("amount", "double")
    records, out = AvroRecords(FIELDS, 1, schema, None), BytesIO()
    [value] = records.write(drawn(FIELDS, [EPOCH_MS]))
    event: Any = fastavro.schemaless_reader(BytesIO(value), schema, None)
    fastavro.schemaless_writer(out, schema, {**event, "amount": amount})

    assert records.read([value, out.getvalue()]).rows.tolist() == [0]


def test_a_declaration_with_its_schema_is_one_text(tmp_path):
    (tmp_path / "e.avsc").write_text(json.dumps(AVRO))
    avro = '[event]\nformat = "avro"\nschema = "e.avsc"\nregistry_id = 9\n[event.fields]'
    (tmp_path / "workload.toml").write_text(TOML.replace("[event.fields]", avro))
    found = load(tmp_path)

    assert unsealed(found.sealed) == found


def test_every_field_of_the_test_is_looked_at():
    assert len({type(field) for _, field in leaves(FIELDS)} | {Time}) == 7


LONG = {"type": "long"}
CENTS = {"type": "bytes", "logicalType": "decimal", "scale": 2}


@pytest.mark.parametrize(
    ("schema", "field", "fits"),
    [
        ("long", Time("ms"), True),
        (LONG, Time("ms"), True),
        ({**LONG, "logicalType": "timestamp-millis"}, Time("ms"), True),
        ({**LONG, "logicalType": "timestamp-micros"}, Time("ms"), False),
        ("int", Time("ms"), False),
        ("long", Integer(0, 1 << 40), True),
        ({**LONG, "logicalType": "timestamp-millis"}, Integer(0, 9), False),
        ("int", Integer(-(1 << 31), (1 << 31) - 1), True),
        ("int", Integer(0, 1 << 31), False),
        ("double", FieldOfDecimals(-999, 999, 2), True),
        ("double", FieldOfDecimals(0, 1 << 60, 2), False),
        ({**CENTS, "precision": 3}, FieldOfDecimals(-999, 999, 2), True),
        ({**CENTS, "precision": 2}, FieldOfDecimals(-999, 999, 2), False),
        ({**CENTS, "precision": 3}, FieldOfDecimals(-999, 999, 1), False),
        ({"type": "enum", "symbols": ["a", "b"]}, Choice(("a",), (1,)), True),
        ({"type": "enum", "symbols": ["b"]}, Choice(("a",), (1,)), False),
        ("string", Choice(("a",), (1,)), True),
        ({"type": "string", "logicalType": "uuid"}, Choice(("a",), (1,)), True),
        ("bytes", Choice(("a",), (1,)), False),
    ],
)
def test_a_schema_fits_a_field_if_it_can_hold_all_of_its_values(schema, field, fits):
    assert _fits(schema, field) is fits
