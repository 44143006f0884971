"""Whatever an engine leaves as its results: it is counted, or it is named; and only one spelling of a number is one."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.engines.template import numbers_of
from harness.evidence.checksums import PREFIX, Checksum
from harness.evidence.observed import Observed
from harness.model import KafkaAddress, UsageError
from harness.results.base import ResultLocation, by_key, patterns_of_keys, window_start
from harness.results.command import row_of
from harness.results.redis_scan import (
    HASH,
    NO_RESULT,
    ORPHAN,
    OURS,
    STRING,
    VANISHED,
    WRONG_TYPE,
    Row,
    interpret,
    matches,
    strangers,
)
from harness.results.registry import open_results, refuse_unknown
from harness.results.template import Template
from harness.results.topic import Named, cell_of
from harness.results.yahoo import translated
from harness.util.clock import Clock
from harness.util.integers import parse_int64
from harness.util.texts import SHOWN, readable, shown
from tests.quick.cases import ANY
from workloads.cells import Codes

NAMES = [str(uuid.UUID(int=number)) for number in range(3)]
CODES = Codes()
cell_at = CODES.one
INDEX = {name: number for number, name in enumerate(NAMES)}
WINDOW_MS, LENGTH_MS = 10_000, 30_000  # windows that overlap
MANIFEST = ANY
ODD_NUMBERS = ("007", "-0", "+5", " 5", "5 ", "5\n", "1_000", "5.0", "1e3", "0x5", "", "-", "٣", "五", "²", "9" * 5000)
TOO_LARGE = (str(1 << 63), str(-(1 << 63) - 1), "9" * 19, "-" + "9" * 19, "1" + "0" * 19)


def location(**described) -> ResultLocation:
    manifest = replace(MANIFEST, **described)
    return ResultLocation(
        None, KafkaAddress(""), "counts", NAMES, {}, WINDOW_MS, LENGTH_MS, 0, manifest, Path(), Path(), Clock()
    )


def observed(rows):
    return interpret(rows, INDEX, CODES, ())


def told(found: Observed) -> int:
    """How many rows are counted or named."""
    repeated = sum(len(each.texts) - 1 for each in found.ambiguities)
    return len(found.counts) + len(found.zeros) + len(found.sums) + len(found.strays) + repeated


NUMBERS = st.one_of(
    st.integers().map(str), st.sampled_from(ODD_NUMBERS + TOO_LARGE), st.integers(0, 99).map(lambda n: f"0{n}")
)
TEXTS = st.one_of(st.sampled_from(NAMES), NUMBERS, st.text(max_size=12))
# What begins as our own keys do is passed over.
KEYS = st.one_of(TEXTS, st.sampled_from(NAMES).map(lambda name: PREFIX + name)).filter(
    lambda key: not matches(key, OURS)
)
ROWS = st.lists(
    st.builds(
        Row, KEYS, TEXTS, TEXTS | st.just("1,1"), st.sampled_from([HASH, HASH, STRING, VANISHED, "list", NO_RESULT])
    ),
    max_size=12,
)


@given(TEXTS | st.binary(max_size=12))
@example(b"\xff1")
def test_a_number_has_one_spelling(text):
    number = parse_int64(text)

    assert number is None or str(number) == (readable(text) if isinstance(text, bytes) else text)
    assert number is None or -(1 << 63) <= number < 1 << 63


@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_every_number_of_64_bits_is_one(number):
    assert parse_int64(str(number)) == parse_int64(str(number).encode()) == number


@pytest.mark.parametrize("text", ODD_NUMBERS + TOO_LARGE)
def test_other_spellings_are_none(text):
    assert parse_int64(text) is None
    assert parse_int64(text.encode()) is None


@given(ROWS)
def test_every_row_is_counted_or_named(rows):
    found = observed(rows)

    assert told(found) == len(rows)
    spelled = {(row.key, row.field, row.value) for row in rows if row.kind == HASH}
    for cell in {*found.counts, *found.zeros}:
        assert (NAMES[CODES.key(cell)], str(CODES.field(cell)), str(found.counts.count(cell))) in spelled
    for cell, pair in found.sums.items():
        assert (PREFIX + NAMES[CODES.key(cell)], str(CODES.field(cell)), str(pair)) in spelled
    assert all(len(stray.where) <= 2 * SHOWN and len(stray.value) <= 2 * SHOWN for stray in found.strays)


def test_a_witness_has_a_sane_length_and_says_how_long_it_was():
    (stray,) = observed([Row(NAMES[0], "0", "9" * 5000, HASH)]).strays

    assert stray.value == "9" * SHOWN + "... (5,000 characters)"
    assert shown("9" * SHOWN) == "9" * SHOWN


def test_two_rows_of_one_cell_are_an_ambiguity_whether_or_not_they_agree():
    found = observed([Row(NAMES[0], "0", "3", HASH), Row(NAMES[1], "0", "3", HASH), Row(NAMES[0], "0", "3", HASH)])

    assert [(each.cell, each.what, each.texts) for each in found.ambiguities] == [(cell_at(0, 0), "count", ("3", "3"))]


def test_two_rows_of_sums_are_one_too():
    found = observed([Row(PREFIX + NAMES[0], "0", text, HASH) for text in ("1,1", "2,2")])

    assert [(each.what, each.texts) for each in found.ambiguities] == [
        ("sums", (str(Checksum(1, 1)), str(Checksum(2, 2))))
    ]


@pytest.mark.parametrize("text", ["01,1", "1,01", "+1,1", "1,-0", "-1,1", f"{1 << 48},1", "1", "1,1,1", "1, 1"])
def test_sums_have_one_spelling(text):
    assert Checksum.read(text) is None


def test_a_count_of_zero_is_kept_beside_the_ledger_that_forgets_it():
    assert observed([Row(NAMES[0], "0", "0", HASH)]).zeros == (cell_at(0, 0),)


@pytest.mark.parametrize("kind", ["list", "set", "zset", "stream", STRING])
@pytest.mark.parametrize("prefix", ["", PREFIX])
def test_a_campaign_that_is_no_hash_is_a_finding_and_other_keys_are_left_alone(kind, prefix):
    strays = observed([Row(prefix + NAMES[0], "", "5", kind), Row("other", "", "5", kind)]).strays

    assert [(stray.value, stray.kind) for stray in strays] == [
        (f"a key of type {kind}", "number"),
        (f"a key of type {kind}", "key"),
    ]


@given(NUMBERS)
def test_a_window_that_is_no_number_is_called_what_it_is_called(text):
    ended = window_start(text, location(window_key="end"))

    number = parse_int64(text)
    assert ended == (text if number is None else str(number - LENGTH_MS))
    assert window_start(text, location()) == text


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | NUMBERS | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
RECORDS = st.fixed_dictionaries({}, optional={"campaign": st.sampled_from(NAMES) | JSON, "window": JSON, "count": JSON})


@given(st.one_of(st.binary(), JSON.map(json.dumps).map(str.encode), RECORDS.map(json.dumps).map(str.encode)))
@example(b"[" * 200_000)
@example(b'{"campaign": "\\ud800", "window": 0, "count": 1}')
def test_a_record_of_a_topic_is_a_cell_in_one_spelling_or_none(value):
    found = cell_of(value)
    if found is None:
        return
    told = json.loads(value)
    assert found[1:] == (str(told["window"]), str(told["count"]))
    named = [told[name] for name in ("window", "count")]
    assert all(type(each) in (int, str) and parse_int64(str(each)) is not None for each in named)
    pa.array(found).validate(full=True)


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"null",
        b"[]",
        b"7",
        b'{"campaign": "a", "window": 1}',
        b'{"campaign": 1, "window": 1, "count": 1}',
        b'{"campaign": "a", "window": 1, "count": 1.0}',
        b'{"campaign": "a", "window": 1, "count": true}',
        b'{"campaign": "a", "window": 1, "count": NaN}',
        b'{"campaign": "a", "window": 1, "count": null}',
        b'{"campaign": "a", "window": "01", "count": 1}',
        b'{"campaign": "a", "window": 1, "count": "+1"}',
        b'{"campaign": "a", "window": 1, "count": 1, "count": 2}',
        b'{"campaign": "a", "window": 1, "count": ' + b"9" * 5000 + b"}",
        '{"campaign": "a", "window": 1, "count": 1}'.encode("utf-16"),
        b'{"campaign": "\xff", "window": 1, "count": 1}',
    ],
)
def test_what_is_no_result_in_a_topic(value):
    assert cell_of(value) is None


PARTS = [{"city": city, "value": value} for value in ("trips", "max") for city in ("Ulm", "Bonn")]
CITY_KEYS = [f"{each['value']}:{each['city']}" for each in PARTS]
BY_NAME = Named(CITY_KEYS, PARTS, numbers_of("opens", has_length=True))


@pytest.mark.parametrize(
    ("record", "cells"),
    [
        (
            {"city": "Ulm", "end": 7, "trips": 3, "max": "9"},
            [("trips:Ulm", "7", "3", "end"), ("max:Ulm", "7", "9", "end")],
        ),
        ({"max": 9, "opens": -7, "city": "Bonn", "at": "now"}, [("max:Bonn", "-7", "9", "opens")]),
        ({"city": "Ulm", "end": 7}, []),
        ({"city": "Ulm", "trips": 3}, []),
        ({"city": "Ulm", "end": 7, "opens": 6, "trips": 3}, []),
        ({"city": "Oslo", "end": 7, "trips": 3}, []),
        ({"city": ["Ulm"], "end": 7, "trips": 3}, []),
        ({"city": "Ulm", "end": 7, "trips": 3, "max": 9.0}, []),
        ({"city": "Ulm", "end": "07", "trips": 3}, []),
        ([1], []),
    ],
)
def test_a_record_may_name_the_keys_and_values_of_a_question(record, cells):
    assert BY_NAME.cells(json.dumps(record).encode()) == cells


def test_a_window_without_a_common_length_is_not_named_by_its_end():
    named = Named(CITY_KEYS, PARTS, numbers_of("opens", has_length=False))

    assert named.cells(b'{"city": "Ulm", "end": 7, "trips": 3}') == []
    assert named.cells(b'{"city": "Ulm", "opens": 5, "end": 7, "trips": 3}') == [("trips:Ulm", "5", "3", "opens")]


def test_a_question_without_a_window_needs_no_name_of_one():
    named = Named(CITY_KEYS, PARTS, numbers_of("", has_length=False))

    assert named.cells(b'{"city": "Ulm", "trips": 3, "end": 9}') == [("trips:Ulm", "0", "3", "window")]


@pytest.mark.parametrize("name", ["end", "window"])
def test_a_value_may_have_the_name_of_a_window(name):
    named = Named([f"{name}:Ulm"], [{"city": "Ulm", "value": name}], numbers_of("opens", has_length=True))

    assert named.cells(json.dumps({"city": "Ulm", "opens": 5, name: 3}).encode()) == [
        (f"{name}:Ulm", "5", "3", "opens")
    ]


@pytest.mark.parametrize(
    ("manifest", "written", "others"),
    [
        ({"results": "redis:template", "key": "w[{end}]", "field": "{campaign}"}, ["w[170]", "w[-10]"], ["w[]", "w1"]),
        ({"results": "redis:template", "key": "c/{campaign}"}, [f"c/{NAMES[0]}"], ["c/x", "c/"]),
        ({"results": "redis:yahoo"}, [str(uuid.uuid4()), "time_updated"], ["mine", "x" * 36]),
        ({}, [NAMES[0], f"updated:{NAMES[1]}", f"sums:{NAMES[2]}"], ["mine"]),
    ],
)
def test_keys_that_a_run_may_write_are_known_before_it_writes_them(manifest, written, others):
    patterns = [*patterns_of_keys(NAMES), *open_results(location(**manifest)).patterns()]

    assert [[any(fnmatch(key, each) for each in patterns) for key in keys] for keys in (written, others)] == [
        [True] * len(written),
        [False] * len(others),
    ]


def test_a_source_that_there_is_not_is_refused_with_the_nearest():
    with pytest.raises(UsageError, match=r"one of redis:compact, .*kafka:TOPIC, .*command.*redis:yahoo"):
        refuse_unknown(location(results="redis:yahooo").manifest)
    with pytest.raises(UsageError, match="results"):
        refuse_unknown(location(results="sqlite:counts.db").manifest)
    for known in ("redis:compact", "kafka:counts", "command"):
        refuse_unknown(location(results=known).manifest)


def test_a_window_is_what_its_name_says():
    end = str(20_000 + LENGTH_MS)
    starts = [
        [window_start(end, location(window_key=key), name) for name in ("window", "opens", "end")]
        for key in ("start", "end")
    ]

    assert starts == [[end, end, "20000"], ["20000", end, "20000"]]


def test_a_number_in_a_record_may_be_a_text():
    assert cell_of(b'{"campaign": "a", "window": "10", "count": 7}') == ("a", "10", "7")


@given(st.text().filter(lambda line: "\n" not in line))
@example(f"{NAMES[0]},007,1")
def test_a_printed_line_is_a_cell_in_one_spelling_or_named(line):
    row = row_of(7, line, location())
    found = observed([row])

    assert len(found.counts) + len(found.zeros) + len(found.strays) == (not row.key.startswith("updated:"))
    for cell in found.counts:
        assert [word.strip(" \t\r") for word in line.split(",")] == [
            NAMES[CODES.key(cell)],
            str(CODES.field(cell)),
            str(found.counts[cell]),
        ]


def test_a_line_that_is_no_cell_is_named_and_one_that_is_printed_twice_is_an_ambiguity():
    rows = [row_of(number, line, location()) for number, line in enumerate(["(1 row)", *[f"{NAMES[0]}, 0, 5"] * 2], 1)]
    found = observed(rows)

    assert [(stray.where, stray.value, stray.kind) for stray in found.strays] == [("line 1", "(1 row)", "number")]
    assert [each.texts for each in found.ambiguities] == [("5", "5")]


TEMPLATES = [
    ("c/{campaign}", "{window}"),
    ("c/{campaign}", "w{window}"),
    ("w:{window}", "{campaign}"),
    ("c/{campaign}/{window}", ""),
    ("{campaign}{window}", ""),
    ("{campaign}-{window}", ""),
]


def row_at(names: tuple[str, str], value: str, kind: str) -> Row:
    return Row(names[0], names[1], value, kind)


def spelled(key, field, campaign, window):
    return key.format(campaign=campaign, window=window), field.format(campaign=campaign, window=window)


@pytest.mark.parametrize(("key", "field"), TEMPLATES)
def test_a_template_finds_each_cell_whatever_stands_between_its_names(key, field):
    template = Template(location(results="redis:template", key=key, field=field))
    kind = HASH if field else STRING
    rows = [
        template.translated(row_at(spelled(key, field, name, window), "5", kind))
        for name in NAMES
        for window in (0, -10)
    ]

    assert dict(observed(rows).counts) == {cell_at(campaign, window): 5 for campaign in range(3) for window in (0, -10)}


@pytest.mark.parametrize(("key", "field"), TEMPLATES)
@given(name=st.sampled_from(NAMES), window=NUMBERS, value=NUMBERS)
def test_a_template_counts_only_what_is_spelled_in_one_way_and_names_the_rest(key, field, name, window, value):
    row = row_at(spelled(key, field, name, window), value, HASH if field else STRING)
    found = observed([Template(location(results="redis:template", key=key, field=field)).translated(row)])

    right = parse_int64(window) is not None and parse_int64(value) is not None
    assert len(found.counts) + len(found.zeros) == right
    assert [stray.kind for stray in found.strays if stray.kind != "campaign"] == ([] if right else ["number"])


@pytest.mark.parametrize(("key", "field"), TEMPLATES)
@given(rows=ROWS)
def test_a_template_passes_nothing_over(key, field, rows):
    template = Template(location(results="redis:template", key=key, field=field))

    assert told(observed(map(template.translated, rows))) == len(rows)


@pytest.mark.parametrize("kind", ["list", "set", STRING])
def test_a_key_of_the_pattern_that_holds_something_else_is_a_finding(kind):
    template = Template(location(results="redis:template", key="c/{campaign}", field="{window}"))
    (stray,) = observed([template.translated(Row("c/nobody", "", "", kind))]).strays

    assert (stray.kind, stray.value) == ("number", f"a key of type {kind} where a hash belongs")


def test_a_hash_of_our_own_schema_is_no_result_of_a_template():
    template = Template(location(results="redis:template", key="c/{campaign}", field="{window}"))
    found = observed([template.translated(Row(NAMES[0], "0", "5", HASH))])

    (stray,) = found.strays
    assert (len(found.counts), stray.kind, stray.value) == (0, "number", "5 at a key that does not fit the manifest")


def test_a_key_with_a_space_at_its_end_is_not_written_like_one_without():
    strays = observed([Row(f"{NAMES[0]} ", "0", "5", HASH), Row(NAMES[0], "1 ", "5", HASH)]).strays

    assert [stray.where for stray in strays] == [f"'{NAMES[0]} '[0]", f"{NAMES[0]}['1 ']"]


def test_two_keys_of_yahoos_schema_for_one_cell_are_no_two_spellings():
    rows = [
        *(Row(NAMES[0], start, f"key {start}", HASH) for start in ("10000", "010000")),
        *(Row(f"key {start}", "seen_count", "5", HASH) for start in ("10000", "010000")),
    ]
    found = observed(translated(rows, NAMES))

    assert dict(found.counts) == {cell_at(0, 10_000): 5}
    assert [(stray.where, stray.kind) for stray in found.strays] == [(f"{NAMES[0]}[010000]", "number")]


def test_what_a_campaign_of_yahoos_calls_its_list_hides_no_hash():
    rows = [Row(NAMES[0], "windows", "orphan", HASH), Row("orphan", "seen_count", "5", HASH)]

    assert [stray.kind for stray in observed(translated(rows, NAMES)).strays] == ["orphan"]


def test_an_orphan_is_one_thing_whatever_stands_beside_its_count():
    fields = {"seen_count": "7", "time_updated": "1", "more": "2"}
    rows = translated([Row("orphan", field, value, HASH) for field, value in fields.items()], NAMES)

    assert [(row.field, row.kind) for row in rows] == [("seen_count", ORPHAN), ("more", HASH)]


YAHOO = st.builds(
    Row,
    KEYS,
    st.sampled_from(["windows", "seen_count", "time_updated"]) | TEXTS,
    TEXTS,
    st.sampled_from([HASH, "list"]),
)


@given(st.lists(YAHOO, max_size=12))
def test_yahoos_schema_counts_only_what_a_campaign_refers_to_in_one_spelling(rows):
    found = observed(translated(rows, NAMES))

    held = {(row.key, row.field): row.value for row in rows if row.kind == HASH}
    for cell in {*found.counts, *found.zeros}:
        key = held[NAMES[CODES.key(cell)], str(CODES.field(cell))]
        assert held[key, "seen_count"] == str(found.counts.count(cell))


def test_another_type_is_an_error_and_a_window_without_its_hash_is_nothing_yet():
    rows = [Row(NAMES[0], "", "", "list"), Row(NAMES[1], "0", "5", HASH), Row(NAMES[2], "", "", VANISHED)]

    assert by_key(rows, NAMES) == [WRONG_TYPE, ["0", "5"], []]


def test_strangers_are_hashes_of_no_campaign_that_nobody_owns():
    hashes = [NAMES[0], PREFIX + NAMES[0], f"updated:{NAMES[0]}", "streamgauge:x", "campaigns", "mine:1", "nobody"]

    assert strangers([*hashes, PREFIX + "nobody"], NAMES, ("mine:*",)) == {"nobody", PREFIX + "nobody"}
