"""What a `workload.toml` may say, and how each mistake in one is answered."""

from __future__ import annotations

import pytest

from harness.model import UsageError
from tests.quick.declared import TOML
from workloads.declared import declaration
from workloads.declared.fields import Decimal, Nested, Time, Zipf
from workloads.declared.tables import InRedis


def loaded(folder, text):
    (folder / "workload.toml").write_text(text)
    return declaration.load(folder)


def test_a_declaration_is_read_whole(tmp_path):
    found = loaded(tmp_path, TOML)

    assert found.id == "orders"
    assert list(found.fields) == ["buyer", "shop", "place", "pieces", "amount", "note", "ordered_at"]
    assert found.fields["shop"] == Zipf(of=20, quarters=5, prefix="shop-")
    assert found.fields["amount"] == Decimal(low=-2000, high=20_000, digits=2)
    assert isinstance(found.fields["place"], Nested)
    assert found.fields["ordered_at"] == Time("iso8601")
    assert found.tables[0].place == InRedis("shop:{shop}", "{region}")
    assert found.question.groups == ("country",)
    assert found.question.number == "opens"
    assert found.groups(seed=1) == [("de",), ("fr",)]


def test_the_file_itself_can_be_named_too(tmp_path):
    assert loaded(tmp_path, TOML) == declaration.load(tmp_path / "workload.toml")


def test_a_decimal_is_what_was_written_and_not_the_nearest_float(tmp_path):
    found = loaded(tmp_path, TOML.replace("to = 200.00 }", "to = 0.07 }"))

    assert found.fields["amount"] == Decimal(low=-2000, high=7, digits=2)


MISTAKES = {
    # what is replaced, by what, and what the answer names
    "an unknown key": ('asks = "', 'ask = "', ["it has no key 'ask'", "nearest: 'asks'"]),
    "a missing key": ('id = "orders"\n', "", ["it needs the key 'id'"]),
    "an id that names no folder": ('id = "orders"', 'id = "Orders!"', ["id = 'Orders!'", "small letters"]),
    "a shipped id": ('id = "orders"', 'id = "ad-impressions"', ["id of your own", "ad_impressions comes with"]),
    "no TOML": ("[oracle]\n", "[oracle\n", ["it is not TOML"]),
    "an unknown kind": ('kind = "zipf"', 'kind = "zip"', ["event.fields.shop.kind = 'zip'", "nearest: 'zipf'"]),
    "no kind": ('kind = "uuid", ', "", ["[event.fields.buyer] lacks the key 'kind'"]),
    "an unknown key of a kind": ("of = 50", "off = 50", ["[event.fields.buyer] has no key 'off'", "nearest: 'of'"]),
    "too many uuids": ("of = 50", "of = 5_000_000", ["event.fields.buyer.of = 5000000", "1,000,000"]),
    "too many texts": (
        'pieces = { kind = "integer", from = 1, to = 9 }',
        'pieces = { kind = "text", from = 1, to = 9, of = 10_001 }',
        ["event.fields.pieces.of = 10001", "10,000"],
    ),
    "a float where a whole number belongs": ("to = 9 }", "to = 9.5 }", ["event.fields.pieces.to", "a whole number"]),
    "a range that is none": ("from = 1, to = 9", "from = 9, to = 1", ["[event.fields.pieces]", "at least `from`"]),
    "more digits than declared": ("from = -20.00", "from = -20.005", ["event.fields.amount.from", "2 digits behind"]),
    "an exponent that is no product of roots": ("1.25", "1.3", ["event.fields.shop.exponent", "multiple of 0.25"]),
    "more weights than values": ("[3, 1]", "[3, 1, 1]", ["2 values and 3 weights"]),
    "weights of nothing": ("[3, 1]", "[0, 0]", ["at least one weight above 0"]),
    "a value twice": ('["de", "fr"]', '["de", "de"]', ["names 'de' twice"]),
    "two times": ('pieces = { kind = "integer", from = 1, to = 9 }', 'at = { kind = "time" }', ["at and ordered_at"]),
    "no time": ('ordered_at = { kind = "time", as = "iso8601" }\n', "", ["needs one field of kind", "it has none"]),
    "a time in another form": ('as = "iso8601"', 'as = "iso"', ["one of ms, iso8601", "nearest: 'iso8601'"]),
    "a field of our own name": (
        "pieces =",
        "event_id =",
        ["calls a field 'event_id'", "a column that the oracle gets"],
    ),
    "two fields to SQL": ("pieces =", "Buyer =", ["two fields 'buyer'"]),
    "a name that SQL can't have": ("pieces =", '"a b" =', ["calls a field 'a b'"]),
    "a table of an unknown field": ('each = "shop"', 'each = "shops"', ["tables.shops.each", "nearest: 'shop'"]),
    "a table of a number": ('each = "shop"', 'each = "pieces"', ["tables.shops.each", "uuid, choice, zipf or text"]),
    "a table that the oracle has": ("[tables.shops]", "[tables.events]", ["no name for a table"]),
    "a table that lies nowhere": ('redis = { key = "shop:{shop}", value = "{region}" }', "", ["needs one place"]),
    "a column that a table has not": ("{region}", "{regoin}", ["tables.shops.redis.value", "nearest: 'region'"]),
    "a brace of nothing": ("shop:{shop}", "shop:{shop}}", ["tables.shops.redis.key", "no brace"]),
    "all rows at one key": ("shop:{shop}", "shop:{region}", ["writes all rows to one key"]),
    "an unknown kind of value": (
        'orders = "count"',
        'orders = "total"',
        ["oracle.values.orders = 'total'", "per event"],
    ),
    "no values": (
        'orders = "count"\ncents = "sum"\nbuyers = "monotone"',
        "",
        ["[oracle.values] is empty"],
    ),
    "a key that is a value too": ('["country", "opens"]', '["cents", "opens"]', ["'cents' among its keys and among"]),
    "two whole numbers as keys": ('["country", "opens"]', '["event_id", "opens"]', ["'opens' and 'event_id'"]),
    "a key of nobody knows what": ('["country"', '["contry"', ["nothing says which texts", "nearest: 'country'"]),
    "a domain of no key": ("[oracle.values]", '[oracle.domains]\nsize = ["s"]\n[oracle.values]', ["none of the keys"]),
    "sessions without a beginning": ('["country", "opens"]', '["country"]\nmerge = true', ["lacks 'opens'"]),
    "a step that a run would wait for": ("step_ms = 10_000", "step_ms = 86_400_000", ["oracle.step_ms", "60,000"]),
    "a schema for JSON": ("[event.fields]", "[event]\nregistry_id = 3\n[event.fields]", ["has no use for"]),
    "a schema that is not there": (
        "[event.fields]",
        '[event]\nformat = "avro"\nschema = "a.avsc"\n[event.fields]',
        ["event.schema = 'a.avsc'", "can't be read"],
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_answered_by_where_it_is_and_what_is_expected(tmp_path, name):
    before, after, answers = MISTAKES[name]
    assert before in TOML

    with pytest.raises(UsageError) as error:
        loaded(tmp_path, TOML.replace(before, after))

    sentence = str(error.value)
    assert str(tmp_path / "workload.toml") in sentence
    for answer in answers:
        assert answer in sentence, sentence


def test_too_many_combinations_of_keys_are_refused(tmp_path):
    text = TOML.replace("of = 50", "of = 900_000").replace('["country", "opens"]', '["country", "buyer", "opens"]')

    with pytest.raises(UsageError, match="1,800,000 combinations of country and buyer, with 3 values each"):
        loaded(tmp_path, text)


def test_a_key_that_sql_makes_up_needs_its_texts(tmp_path):
    text = TOML.replace('["country", "opens"]', '["size", "opens"]').replace(
        "[oracle.values]", '[oracle.domains]\nsize = ["small", "large"]\n[oracle.values]'
    )

    assert loaded(tmp_path, text).groups(seed=1) == [("small",), ("large",)]


def test_a_folder_without_a_declaration_is_told_how_to_get_one(tmp_path):
    with pytest.raises(UsageError, match=r"no workload\.toml in .*streamgauge workload new DIR"):
        declaration.load(tmp_path / "nothing")
