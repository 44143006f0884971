"""A declaration behind the seam of workloads: what is planned, what is sent and what is judged is the same."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generators.disorder import PRESETS
from generators.encode import Encoder
from generators.profiles import steady
from generators.schedule import Schedule
from harness.evidence.ledger import Ledger
from harness.judging.facts import by_the_tape
from harness.kafka_log.recount import columns_of
from harness.model import FaultSpec, RunSpec, TapeSpec, UsageError
from harness.selftest import payments
from harness.util.toml_reader import MistakeError
from reports.sections.cells import grid_of
from tests.quick.declared import TOML
from tests.quick.tapes import specs
from workloads.base import COUNTS, NEVER, NO_EVENT, Kind, Values
from workloads.declared import answers, checked, windows
from workloads.declared.codec import column_of
from workloads.declared.declaration import load
from workloads.declared.fields import NAME, RESERVED
from workloads.declared.oracle import Oracle
from workloads.declared.sample import sample
from workloads.registry import chosen, codec_of, length_ms_of, oracle_of, results_of, workload_of
from workloads.sentinels import as_events, mark, totals_of

EPOCH_MS = 1_763_700_060_000
SESSIONS = """
keys = ["buyer", "opens"]
merge = true
cells = "SELECT event, buyer, ordered_at AS opens, ordered_at + 300 AS closes FROM events"
fold = "SELECT buyer, opens, count(*) AS orders FROM cells GROUP BY ALL"
[oracle.values]
orders = "count"
"""
SLIDING = """
keys = ["country", "opens"]
step_ms = 500
cells = '''
SELECT event, place.country AS country, unnest(sliding(ordered_at, 2000, 500)) AS opens, opens + 2000 AS closes, buyer
FROM events JOIN shops USING (shop) WHERE region = 'north'
'''
fold = "SELECT country, opens, count(DISTINCT buyer) AS buyers FROM cells GROUP BY ALL"
[oracle.values]
buyers = "monotone"
"""
PER_EVENT = """
keys = ["event_id"]
cells = "SELECT event, event_id, NULL AS closes, pieces FROM events"
fold = "SELECT event_id, sum(pieces) AS pieces FROM cells GROUP BY ALL"
[oracle.values]
pieces = "per event"
"""
AVRO = TOML.replace("[event.fields]", '[event]\nformat = "avro"\nregistry_id = 7\n\n[event.fields]')


def asking(oracle: str) -> str:
    return TOML.split("[oracle]")[0] + "[oracle]" + oracle


DECLARATIONS = {
    "tumbling": TOML,
    "sliding": asking(SLIDING),
    "sessions": asking(SESSIONS),
    "per event": asking(PER_EVENT),
    "avro": AVRO,
}


@pytest.fixture(scope="module")
def sealed(tmp_path_factory):
    def seal(text):
        folder = tmp_path_factory.mktemp("declared")
        (folder / "workload.toml").write_text(text)
        return load(folder).sealed

    return {name: seal(text) for name, text in DECLARATIONS.items()}


def tape_of(declaration: str, **changes: object) -> TapeSpec:
    spec = TapeSpec(
        11, steady(500, 2000), 3, 20, 3, 10, 10, PRESETS["storm"], workload="orders", declaration=declaration
    )
    return replace(spec, **changes)  # type: ignore[arg-type]


def run_of(tape: TapeSpec) -> RunSpec:
    return RunSpec("", "", "", tape, 10_000, 10_000, "", None, FaultSpec("none"))


def log_of(tape: TapeSpec):
    """Everything that a tape sends, as it is read back."""
    codec, blocks = codec_of(tape), [*Schedule(tape).blocks()]
    encoder = Encoder(codec, EPOCH_MS)
    values = [message["value"] for block in blocks for message in encoder.batch(block)]
    ids = np.concatenate([block.id for block in blocks]).astype(np.int64)
    return blocks, {"event_id": ids, **codec.read(Values.of(values), ids)}


def recounted(oracle, log):
    events = {name: column[log["kind"] == COUNTS] for name, column in log.items()}
    places = oracle.places(events)
    return oracle.fold(places.cell, places.columns)


def as_cells(totals):
    return dict(zip(totals.cell.tolist(), totals.value.tolist(), strict=True))


@pytest.mark.parametrize("name", DECLARATIONS)
def test_what_is_read_is_what_was_planned_and_both_routes_agree(name, sealed):
    tape = tape_of(sealed[name])
    blocks, log = log_of(tape)
    oracle = oracle_of(run_of(tape))

    poison = np.concatenate([block.poison for block in blocks]) > 0
    assert ((log["kind"] == NO_EVENT) == poison).all()
    assert poison.any()
    for column in codec_of(tape).content:
        planned = np.concatenate([block.content[column] for block in blocks])
        assert (log[column][~poison] == planned[~poison]).all(), column
    settled = as_cells(oracle.settle(oracle.plan(blocks), EPOCH_MS))
    assert settled == as_cells(recounted(oracle, log))
    assert len(settled) > 5


MANY = 500  # events: many queries of 32, each of which takes a while


@pytest.mark.parametrize("name", DECLARATIONS)
def test_many_small_queries_find_the_places_of_one_large_query(name, sealed, monkeypatch):
    tape = tape_of(sealed[name])
    _, log = log_of(tape)
    log = {name: column[log["kind"] == COUNTS][:MANY] for name, column in log.items()}
    whole = recounted(oracle_of(run_of(tape)), log)
    rows = oracle_of(run_of(tape)).places(log).row
    monkeypatch.setattr(answers, "FIRST_EVENTS", 32)
    monkeypatch.setattr(answers, "MOST_ROWS", 100)

    assert as_cells(recounted(oracle_of(run_of(tape)), log)) == as_cells(whole)
    assert (oracle_of(run_of(tape)).places(log).row == rows).all()


def test_a_cell_that_closes_at_two_times_is_refused_if_two_queries_see_one_each(tmp_path, monkeypatch):
    at_two_times = TOML.replace("opens + 10000 AS closes", "opens + 10000 + event_id % 2 AS closes")
    (tmp_path / "workload.toml").write_text(at_two_times)
    tape = tape_of(load(tmp_path).sealed)
    _, log = log_of(tape)
    rows = log["kind"] == COUNTS
    ordered = np.argsort(log["event_id"][rows] % 2, kind="stable")
    monkeypatch.setattr(answers, "FIRST_EVENTS", int((log["event_id"][rows] % 2 == 0).sum()))

    with pytest.raises(MistakeError, match="closes one cell at two times: orders of country"):
        oracle_of(run_of(tape)).places({name: column[rows][ordered] for name, column in log.items()})


@given(spec=specs())
@settings(max_examples=5)
def test_on_any_tape(spec, sealed):
    tape = replace(spec, workload="orders", declaration=sealed["tumbling"], probes=0)
    blocks, log = log_of(tape)
    oracle = oracle_of(run_of(tape))

    assert as_cells(oracle.settle(oracle.plan(blocks), EPOCH_MS)) == as_cells(recounted(oracle, log))


NAMED = """
id = "named"
asks = "the sum of each text in windows of a second"
[event.fields]
{text} = {{ kind = "choice", values = ["de", "fr"] }}
{number} = {{ kind = "integer", from = 1, to = 9 }}
{time} = {{ kind = "time" }}
[oracle]
keys = ["{text}", "opens"]
step_ms = 1000
cells = '''
SELECT event, "{text}", tumbling("{time}", 1000) AS opens, opens + 1000 AS closes, "{number}" AS added FROM events
'''
fold = 'SELECT "{text}", opens, CAST(sum(added) AS BIGINT) AS summed FROM cells GROUP BY ALL'
[oracle.values]
summed = "sum"
"""
# What the harness calls columns of its own, in logs, tapes and tables.
OURS = (
    "kind",
    "event_time_ms",
    "partition",
    "offset",
    "fate",
    "stamped_ms",
    "place",
    "cell",
    "closes_ms",
    "id",
    "events",
)
LEGAL = st.from_regex(NAME, fullmatch=True).filter(lambda name: name.lower() not in {*RESERVED, "summed"})


@pytest.mark.parametrize(
    "names", [("kind", "event_time_ms", "at"), ("event_time_ms", "kind", "offset"), ("offset", "partition", "kind")]
)
def test_a_field_may_have_the_name_of_a_column_of_ours(names):
    assert_any_names_do(*names)


@given(names=st.lists(st.sampled_from(OURS) | LEGAL, min_size=3, max_size=3, unique_by=str.lower))
@settings(max_examples=10)
def test_fields_may_have_any_legal_names(names):
    assert_any_names_do(*names)


def assert_any_names_do(text, number, time):
    """Planned and recounted, it is what plain Python makes of the records."""
    declared = {"text": NAMED.format(text=text, number=number, time=time), "schema": None}
    tape = tape_of(json.dumps(declared), workload="named", probes=0)
    codec, oracle, keys = codec_of(tape), oracle_of(run_of(tape)), results_of(tape).keys
    blocks, encoder = [*Schedule(tape).blocks()], Encoder(codec, EPOCH_MS)
    sent = [message for block in blocks for message in encoder.batch(block)]
    log = columns_of([(3, [each["value"] for each in sent], [each["key"] for each in sent])], codec)
    right: Counter[tuple[str, int]] = Counter()
    for poison, message in zip(np.concatenate([block.poison for block in blocks]), sent, strict=True):
        if not poison:
            record = json.loads(message["value"] or b"")
            right[f"summed:{record[text]}", record[time] // 1000 * 1000] += record[number]

    def named(totals):
        return {(keys[oracle.codes.key(cell)], oracle.codes.field(cell)): n for cell, n in as_cells(totals).items()}

    assert (set(log["partition"]), log["offset"].tolist()) == ({3}, [*range(len(sent))])
    assert named(recounted(oracle, log)) == right
    assert named(oracle.settle(oracle.plan(blocks), EPOCH_MS)) == right
    marks = [mark(0, key, 0, EPOCH_MS, "opening") for key in range(2)]
    assert sorted(key for key, _ in named(totals_of(oracle, codec, marks))) == ["summed:de", "summed:fr"]
    assert codec.say(blocks[0].content, 0) in (f"{text} de", f"{text} fr")


def test_cells_have_names_values_and_closing_times(sealed):
    tape = tape_of(sealed["tumbling"])
    oracle, keys = oracle_of(run_of(tape)), results_of(tape).keys
    _, log = log_of(tape)
    places = oracle.places({name: column[log["kind"] == COUNTS] for name, column in log.items()})

    assert list(keys) == [f"{value}:{country}" for value in ("orders", "cents", "buyers") for country in ("de", "fr")]
    assert [value.kind for value in oracle.values] == [Kind.COUNT, Kind.SUM, Kind.MONOTONE]
    assert (places.closes_ms == oracle.begins_ms(places.cell) + 10_000).all()
    assert (np.diff(places.row) >= 0).all()
    assert oracle.name(oracle.codes.one(3, EPOCH_MS), EPOCH_MS) == "cents of country fr, from 04:41:00 UTC on (+0 s)"
    assert oracle.name(oracle.codes.one(3, EPOCH_MS), EPOCH_MS + 300).endswith("(+0 s)")
    assert oracle.name(oracle.codes.one(3, EPOCH_MS), EPOCH_MS + 700).endswith("(-1 s)")


def test_cells_without_an_end_never_close(sealed):
    tape = tape_of(sealed["per event"])
    oracle = oracle_of(run_of(tape))
    places = oracle.places({name: column[:9] for name, column in log_of(tape)[1].items()})

    assert (places.closes_ms == NEVER).all()
    assert (oracle.begins_ms(places.cell) == 0).all()


def test_some_cells_of_an_event_can_be_left_out(sealed):
    tape = tape_of(sealed["sliding"])
    oracle = oracle_of(run_of(tape))
    _, log = log_of(tape)
    events = {name: column[log["kind"] == COUNTS] for name, column in log.items()}
    places = oracle.places(events)
    kept = oracle.codes.fields(places.cell) >= EPOCH_MS

    all_of, some = (
        as_cells(oracle.fold(places.cell[mask], {name: column[mask] for name, column in places.columns.items()}))
        for mask in (np.ones(len(kept), dtype=np.bool_), kept)
    )

    assert some == {code: value for code, value in all_of.items() if oracle.codes.field(code) >= EPOCH_MS}
    assert 0 < len(some) < len(all_of)


def test_an_event_that_has_to_count_does_and_marks_differ(sealed):
    codec = codec_of(tape_of(sealed["sliding"]))
    marks = [codec.mark(mark(number, 0, 0, EPOCH_MS, "opening")) for number in range(3)]
    none = np.zeros(30, dtype=np.bool_)
    draws = np.arange(30, dtype=np.uint64)

    drawn = codec.draw(draws, probes=None, hot=none, sure=none)
    sure = codec.draw(draws, probes=None, hot=none, sure=~none)

    assert not codec.counts(drawn).all()
    assert codec.counts(sure).all()
    assert codec.counts({name: np.array([each[name] for each in marks]) for name in codec.content}).all()
    assert len({tuple(each.items()) for each in marks}) == 3


@pytest.mark.parametrize("name", ["tumbling", "sliding", "sessions"])
def test_a_mark_lies_in_a_cell_of_its_key(name, sealed):
    tape = tape_of(sealed[name])
    codec, oracle = codec_of(tape), oracle_of(run_of(tape))
    keys = [0, 1, 1, 0]
    marks = [mark(number, key, 0, EPOCH_MS, "opening") for number, key in enumerate(keys)]

    totals = totals_of(oracle, codec, marks)

    assert sorted({oracle.codes.key(cell) for cell in totals.cell.tolist()} & {0, 1}) == [0, 1]
    assert {oracle.codes.key(cell) % oracle.groups for cell in totals.cell.tolist()} == {0, 1}


@pytest.mark.parametrize("name", ["tumbling", "sliding", "sessions"])
def test_marks_in_cells_of_the_load_are_folded_with_its_events(name, sealed):
    tape = tape_of(sealed[name])
    codec, oracle = codec_of(tape), oracle_of(run_of(tape))
    blocks, log = log_of(tape)
    marks = [mark(number, number % 2, 0, EPOCH_MS + 250 * number, "opening") for number in range(6)]
    own = as_events(codec, marks)
    events = {column: np.concatenate([log[column][log["kind"] == COUNTS], own[column]]) for column in own}
    run = cast(Any, SimpleNamespace(codec=codec, marks=marks, schedule=Schedule(tape), epoch_ms=EPOCH_MS))
    planned = Ledger.of(oracle.settle(oracle.plan(blocks), EPOCH_MS))

    together = by_the_tape(run, oracle, planned)

    assert together == Ledger.of(recounted(oracle, {**events, "kind": np.full(len(events["event_id"]), COUNTS)}))
    added = planned + Ledger.of(totals_of(oracle, codec, marks))
    assert added != together, "where a mark is alone in its cell, adding is as good"


@pytest.mark.parametrize(
    ("name", "length_ms"), [("tumbling", 10_000), ("sliding", 2000), ("sessions", None), ("per event", None)]
)
def test_the_length_of_windows_is_known_where_it_is_one(name, length_ms, sealed):
    assert length_ms_of(run_of(tape_of(sealed[name]))) == length_ms


RARE = '''
id = "any"
asks = "anything"

[event.fields]
kind = { kind = "time", as = "ms" }
fate = { kind = "uuid", of = 1000 }
odd = { kind = "integer", from = 0, to = 1 }

[oracle]
keys = ["opens"]
step_ms = 500
cells = """
SELECT event, opens, opens + 500 AS closes FROM (
    SELECT *, tumbling(kind, 500) AS opens FROM events AS a WHERE odd = 1 AND EXISTS (
        SELECT 1 FROM events AS b
        WHERE b.odd = 0 AND b.fate = a.fate AND tumbling(b.kind, 500) = tumbling(a.kind, 500)
    )
)
"""
fold = "SELECT opens, count(*) AS pairs FROM cells GROUP BY opens"

[oracle.values]
pairs = "count"
'''


def test_the_length_of_windows_is_known_though_a_pair_of_events_in_one_is_rare(tmp_path):
    (tmp_path / "workload.toml").write_text(RARE)
    rare = load(tmp_path)
    _, events = sample(rare)

    assert not len(Oracle(rare.question).cells(events)), "a minute of events has no pair"
    assert windows.length_ms(rare) == 500


@pytest.mark.parametrize(
    "fold",
    [
        "SELECT country, opens, count(*) AS orders FROM cells GROUP BY ALL ORDER BY 3 DESC, 1, 2 LIMIT 1",
        "SELECT country, opens, count(*) AS orders FROM cells GROUP BY ALL HAVING count(*) > 100",
        "SELECT country, opens, count(*) FILTER (amount > 0) AS orders FROM cells GROUP BY ALL",
        "SELECT country, opens, count(DISTINCT buyer) AS orders FROM cells GROUP BY ALL",
    ],
    ids=["the first", "some cells", "some events", "different ones"],
)
def test_what_is_no_count_is_not_taken_for_one(fold, tmp_path):
    cells = TOML.split("cells = '''")[1].split("'''")[0]
    oracle = f'keys = ["country", "opens"]\nstep_ms = 10_000\ncells = """{cells}"""\nfold = """{fold}"""'
    (tmp_path / "workload.toml").write_text(asking(f'\n{oracle}\n[oracle.values]\norders = "count"\n'))

    with pytest.raises(
        UsageError, match=r'gives orders, which .* calls a "count": .* "ranked" for a place among others'
    ):
        checked.load(tmp_path)


def test_a_skewed_input_falls_on_one_key(sealed):
    codec = codec_of(tape_of(sealed["tumbling"]))
    hot = np.arange(30) < 10

    drawn = codec.draw(np.arange(30, dtype=np.uint64), probes=None, hot=hot, sure=hot & False)

    assert set(drawn[column_of("buyer")][hot]) == {0}
    assert len(set(drawn[column_of("buyer")][~hot])) > 5


def test_tables_are_what_an_engine_finds(sealed):
    texts = results_of(tape_of(sealed["tumbling"])).tables.texts

    assert len(texts) == 20
    assert texts["shop:shop-1"] in ("north", "south")


@pytest.mark.parametrize("field", ["region", "{shop}"])
def test_a_table_may_lie_in_fields_of_hashes(tmp_path, field):
    place = f'redis = {{ key = "shops", field = "{field}", value = "{{region}}" }}'
    if field == "region":
        place = place.replace('"shops"', '"shop:{shop}"')
    tables = tables_of(tmp_path, place)
    key, name = ("shop:shop-1", "region") if field == "region" else ("shops", "shop-1")

    assert not tables.texts
    assert tables.hashes[key][name] in ("north", "south")
    assert sum(map(len, tables.hashes.values())) == 20
    assert tables.kinds[key] == "hash", "no result of a job's"


def test_a_table_may_lie_in_a_topic(tmp_path):
    tables = tables_of(tmp_path, 'topic = "shops"')

    key, value = tables.topics["shops"][0]
    assert (len(tables.topics["shops"]), key) == (20, b"shop-1")
    assert json.loads(value)["region"] in ("north", "south")


def tables_of(folder, place):
    (folder / "workload.toml").write_text(TOML.replace('redis = { key = "shop:{shop}", value = "{region}" }', place))
    return results_of(tape_of(load(folder).sealed)).tables


@pytest.mark.parametrize("name", ["tumbling", "sliding"])
def test_a_log_is_given_back_as_its_records_had_it(name, sealed):
    tape = tape_of(sealed[name])
    codec = codec_of(tape)
    draws = np.arange(9, dtype=np.uint64)
    none = np.zeros(9, bool)
    content = codec.draw(draws, probes=None, hot=none, sure=none)
    events = SimpleNamespace(
        content=content, event_time_rel_ms=np.arange(9), poison=np.where(draws == 4, 1, 0).astype(np.int8)
    )
    values = [*codec.write(events, EPOCH_MS)]
    log = codec.read(Values.of(values), np.arange(9))
    texts = codec.texts(log)

    assert {*map(column_of, texts)} == set(codec.content)
    for path, column in texts.items():
        for row, (text, value) in enumerate(zip(column.to_pylist(), values, strict=True)):
            told: Any = None if row == 4 else json.loads(value or b"", parse_float=Decimal)
            for key in path.split(".") if told else ():
                told = told[key]
            assert text == told


def test_an_event_is_said_by_what_names_its_cells(sealed):
    codec = codec_of(tape_of(sealed["tumbling"]))
    drawn = codec.draw(np.arange(3, dtype=np.uint64), probes=None, hot=np.zeros(3, bool), sure=np.zeros(3, bool))

    assert codec.say(drawn, 0) in ("place.country de", "place.country fr")


def test_a_declared_workload_is_chosen_by_its_folder(tmp_path):
    (tmp_path / "workload.toml").write_text(TOML)

    found = chosen(str(tmp_path))

    assert (found.id, found.keys) == ("orders", frozenset())
    assert workload_of(tape_of(found.declaration)).id == "orders"
    assert chosen("ad_impressions").declaration == ""
    with pytest.raises(UsageError, match=r"no workload 'nosuch'.*the folder of its workload\.toml"):
        chosen("nosuch")
    with pytest.raises(UsageError, match=r"There is no workload\.toml in .*nowhere"):
        chosen(str(tmp_path / "nowhere"))


def test_the_strip_of_cells_calls_a_wrong_sum_a_wrong_value_and_columns_by_their_values():
    lost = dict(payments.planted())["a refund lost"]

    grid = grid_of(lost)

    assert sorted(mark.kind for mark in grid.marks) == ["lost", "wrong value"]
    assert grid.columns_are == "key (first all of payments, then cents)"
