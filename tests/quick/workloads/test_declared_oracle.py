"""The oracle as SQL: the same as the one written by hand, for all kinds of cells; and what of SQL is refused."""

from __future__ import annotations

import tomllib
from collections import defaultdict
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.util.toml_reader import MistakeError
from tests.quick.declared import TOML, drawn, numbered, relation
from workloads.ad_impressions import oracle as by_hand
from workloads.ad_impressions.schema import EVENT_TYPES, Population
from workloads.declared.fields import read_fields
from workloads.declared.oracle import Limits, Oracle, Question, answered_twice

PARSED = tomllib.loads(TOML, parse_float=Decimal)
FIELDS = read_fields("event.fields", PARSED["event"]["fields"])
EPOCH_MS = 1_763_700_000_000
WINDOW_MS = 10_000
PEOPLE = Population(7, 5, 3, carries_ids=False)


# The proof of the route: the question of the ads, asked in SQL.

ADS = Question(
    cells="""
        SELECT event, campaign_id, tumbling(event_time, 10000) AS opens, opens + 10000 AS closes
        FROM events JOIN ads USING (ad_id) WHERE event_type = 'view'
    """,
    fold="SELECT campaign_id, opens, count(*) AS views FROM cells GROUP BY ALL",
    keys=("campaign_id", "opens"),
    values={"views": "count"},
    step_ms=WINDOW_MS,
)
ADS_TABLE = pa.table({"ad_id": list(PEOPLE.ad_to_campaign), "campaign_id": list(PEOPLE.ad_to_campaign.values())})


@dataclass(frozen=True)
class Block:
    """Planned events as the fold by hand gets them, before and behind the seam of workloads."""

    event_time_rel_ms: np.ndarray
    ad: np.ndarray
    event_type: np.ndarray
    poison: np.ndarray
    content: dict[str, np.ndarray] = field(default_factory=dict)


# Around the edges of windows, before and after the epoch, and anywhere.
EDGES = st.builds(lambda window, off: window * WINDOW_MS + off, st.integers(-3, 3), st.sampled_from([-1, 0, 1]))
EVENT = st.tuples(
    st.one_of(EDGES, st.integers(-40_000, 40_000)),
    st.integers(0, len(PEOPLE.ad_ids) - 1),
    st.integers(0, len(EVENT_TYPES) - 1),
    st.sampled_from([0, 0, 0, 1, 5]),
)


def block_of(rows):
    times_ms, ad, event_type, poison = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    return Block(times_ms, ad, event_type, poison, {"ad": ad, "event_type": event_type})


def ad_events(blocks):
    """What an engine reads of these blocks: poison is no event."""
    rows = [
        (time_ms, PEOPLE.ad_ids[ad], EVENT_TYPES[event_type])
        for block in blocks
        for time_ms, ad, event_type, poison in zip(
            block.event_time_rel_ms, block.ad, block.event_type, block.poison, strict=True
        )
        if not poison
    ]
    columns = dict(zip(("event_time", "ad_id", "event_type"), zip(*rows, strict=True), strict=True)) if rows else {}
    types = {"event_time": pa.int64(), "ad_id": pa.string(), "event_type": pa.string()}
    return numbered(pa.table({name: pa.array(columns.get(name, ()), kind) for name, kind in types.items()}))


@given(st.lists(st.lists(EVENT, min_size=1, max_size=60), max_size=3))
@settings(max_examples=25)  # each has a DuckDB of its own
def test_the_ads_in_sql_are_the_ads_by_hand(rows):
    blocks = [block_of(some) for some in rows]

    found = Oracle(ADS, {"ads": ADS_TABLE}).answer(ad_events(blocks))

    numbers = {name: number for number, name in enumerate(PEOPLE.campaign_ids)}
    cells = {(numbers[row["campaign_id"]], row["opens"]): row["views"] for row in found.to_pylist()}
    assert cells == by_hand.fold(blocks, PEOPLE, WINDOW_MS)


def test_a_fold_by_hand_that_is_off_by_one_at_an_edge_is_seen_to_differ():
    """The test above can fail: windows that hold their end instead of their beginning are not the same."""
    blocks = [block_of([(10_000, 0, 0, 0), (-10_000, 1, 0, 0)])]
    wrong = replace(ADS, cells=ADS.cells.replace("tumbling(event_time,", "tumbling(event_time - 1,"))

    answers = [Oracle(each, {"ads": ADS_TABLE}).answer(ad_events(blocks)) for each in (ADS, wrong)]

    assert not answers[0].equals(answers[1])


# Kinds of cells, each beside the plainest Python.

TIMES = st.lists(st.one_of(EDGES, st.integers(-60_000, 60_000)), min_size=1, max_size=40)
RELATION_TIMES = TIMES.map(lambda times: [EPOCH_MS + time for time in times])


def orders(times_ms):
    return relation(FIELDS, drawn(FIELDS, times_ms)), drawn(FIELDS, times_ms)


def answer(question, events):
    return [tuple(row.values()) for row in Oracle(question).answer(events).to_pylist()]


TUMBLING = Question(
    PARSED["oracle"]["cells"],
    PARSED["oracle"]["fold"],
    tuple(PARSED["oracle"]["keys"]),
    PARSED["oracle"]["values"],
    step_ms=WINDOW_MS,
)


@given(RELATION_TIMES)
@settings(max_examples=10)
def test_tumbling_windows_count_sum_signed_numbers_and_tell_buyers_apart(times_ms):
    events, columns = orders(times_ms)
    cells: defaultdict[Any, list[Any]] = defaultdict(lambda: [0, 0, set()])
    for country, buyer, cents, time_ms in zip(
        columns["place.country"], columns["buyer"], columns["amount"], times_ms, strict=True
    ):
        cell = cells[("de", "fr")[country], time_ms // WINDOW_MS * WINDOW_MS]
        cell[0] += 1
        cell[1] += int(cents)
        cell[2].add(int(buyer))

    assert answer(TUMBLING, events) == [(*key, n, cents, len(who)) for key, (n, cents, who) in sorted(cells.items())]


def test_a_sum_may_be_negative_and_nothing():
    amounts = pa.array([Decimal("-5.00"), Decimal("5.00"), Decimal("-0.01")], pa.decimal128(18, 2))
    events = numbered(pa.table({"k": ["a", "a", "b"], "amount": amounts}))
    question = Question(
        "SELECT event, k, NULL AS closes, amount FROM events",
        "SELECT k, CAST(100 * sum(amount) AS BIGINT) AS cents FROM cells GROUP BY ALL",
        ("k",),
        {"cents": "sum"},
    )

    assert Oracle(question).answer(events).to_pylist() == [{"k": "a", "cents": 0}, {"k": "b", "cents": -1}]


SLIDING = Question(
    """
    SELECT event, unnest(sliding(ordered_at, 10000, 2500)) AS opens, opens + 10000 AS closes FROM events
    """,
    "SELECT opens, count(*) AS orders FROM cells GROUP BY ALL",
    ("opens",),
    {"orders": "count"},
    step_ms=2500,
)


@given(RELATION_TIMES)
@settings(max_examples=10)
def test_sliding_windows_hold_each_event_as_often_as_they_overlap(times_ms):
    cells: defaultdict[int, int] = defaultdict(int)
    for time_ms in times_ms:
        for opens_ms in range(time_ms // 2500 * 2500 - 7500, time_ms + 1, 2500):
            cells[opens_ms] += 1

    assert answer(SLIDING, orders(times_ms)[0]) == sorted(cells.items())
    assert sum(cells.values()) == 4 * len(times_ms)


SESSIONS = Question(
    "SELECT event, buyer, ordered_at AS opens, ordered_at + 5000 AS closes FROM events",
    "SELECT buyer, opens, count(*) AS orders, max(closes) - opens AS lasts_ms FROM cells GROUP BY buyer, opens",
    ("buyer", "opens"),
    {"orders": "count", "lasts_ms": "monotone"},
    merge=True,
)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 12).map(lambda n: n * 2500)), min_size=1, max_size=20))
@settings(max_examples=15)
def test_sessions_merge_where_they_overlap_or_touch(visits):
    events = numbered(
        pa.table({"buyer": [f"b{who}" for who, _ in visits], "ordered_at": [EPOCH_MS + at_ms for _, at_ms in visits]})
    )
    sessions: list[list[Any]] = []
    for who, at_ms in sorted(visits):
        if sessions and sessions[-1][0] == f"b{who}" and at_ms <= sessions[-1][3]:
            sessions[-1][2:] = [sessions[-1][2] + 1, at_ms + 5000]
        else:
            sessions.append([f"b{who}", at_ms, 1, at_ms + 5000])

    assert answer(SESSIONS, events) == [(who, EPOCH_MS + at, n, end - at) for who, at, n, end in sessions]


def test_sessions_merge_whatever_the_columns_of_their_events_are_called():
    times_ms = [0, 3000, 60_000]
    events = numbered(pa.table({"buyer": ["b"] * 3, "ordered_at": times_ms, "cell_begins": [1] * 3, "n": [1, 2, 3]}))
    named = SESSIONS.cells.replace("FROM", ", cell_begins, n AS cell_number FROM")

    assert answer(replace(SESSIONS, cells=named), events) == [("b", 0, 2, 8000), ("b", 60_000, 1, 5000)]


def test_some_cells_of_an_event_can_be_left_out():
    """As an engine does that drops a late event from one sliding window and keeps it in the next."""
    oracle, events = Oracle(SLIDING), orders([EPOCH_MS])[0]
    cells = oracle.cells(events)

    kept = cells.filter(pa.compute.greater(cells.column("closes"), EPOCH_MS + 5000))

    assert [row["opens"] - EPOCH_MS for row in oracle.fold(cells).to_pylist()] == [-7500, -5000, -2500, 0]
    assert [row["opens"] - EPOCH_MS for row in oracle.fold(kept).to_pylist()] == [-2500, 0]


def test_one_cell_for_each_event():
    question = Question(
        "SELECT event, event_id, NULL AS closes, pieces FROM events",
        "SELECT event_id, sum(pieces) AS pieces FROM cells GROUP BY ALL",
        ("event_id",),
        {"pieces": "per event"},
    )
    events, columns = orders([EPOCH_MS, EPOCH_MS + 1])

    assert Oracle(question).answer(events).column("pieces").to_pylist() == columns["pieces"].tolist()


@pytest.mark.parametrize("question", [TUMBLING, SLIDING, SESSIONS], ids=["tumbling", "sliding", "sessions"])
def test_an_answer_is_that_of_two_threads_and_of_its_own_cells(question):
    events = orders([EPOCH_MS + n * 100 for n in range(500)])[0]
    whole = answered_twice(question, {}, events, "ordered_at")

    assert Oracle(question).fold(Oracle(question).cells(events)).equals(whole)


# What is refused.

EVENTS = orders([EPOCH_MS + n * 100 for n in range(500)])[0]
OPENS = "tumbling(ordered_at, 10000) AS opens, opens + 10000 AS closes"
ORDERS = f"SELECT event, place.country AS country, {OPENS}{{}} FROM events"
FOLD = "SELECT country, opens, {} FROM cells GROUP BY ALL"
KEYS = ("country", "opens")

BAD_CELLS = {
    "no SQL": ("SELEC 1", "syntax error"),
    "nothing": ("-- all that I know", "is nothing; one SELECT is expected"),
    "two statements": ("SELECT 1; SELECT 2", "SELECT and SELECT; one SELECT"),
    "a change": ("CREATE TABLE t AS SELECT 1", "one SELECT is expected"),
    "a setting": ("SET threads = 8", "one SELECT is expected"),
    "an extension": ("INSTALL httpfs", "one SELECT is expected"),
    "a file": ("SELECT * FROM read_text('/etc/hostname')", "reaches for a file or the network"),
    "a file without a function": ("SELECT * FROM '/etc/hostname'", "can't be run by DuckDB"),
    "files by pattern": ("SELECT * FROM glob('/*')", "reaches for a file or the network"),
    "the network": ("SELECT * FROM read_csv('http://127.0.0.1:9/a.csv')", "oracle] cells"),
    "a variable of Python": ("SELECT * FROM EVENTS_OF_PYTHON", "can't be run by DuckDB"),
    "an unknown column": (ORDERS.format(", amont"), '"amont" not found'),
    "a word of SQL": ("SELECT event, end FROM events", "syntax error"),
    "no key": (ORDERS.replace(" AS country", " AS land").format(""), "gives no column country"),
    "no close": (ORDERS.replace("opens + 10000 AS closes", "1 AS more").format(""), "gives no column closes"),
    "a float as a key": (
        ORDERS.replace("tumbling(ordered_at, 10000)", "ordered_at / 1.5e0").format(""),
        "key opens as DOUBLE",
    ),
    "a number as a text": (ORDERS.replace("place.country", "pieces").format(""), "key country as BIGINT"),
    "a moment as a close": (ORDERS.replace("opens + 10000", "now()").format(""), "gives closes as TIMESTAMP"),
    "NULL as a key": (ORDERS.replace("place.country", "nullif(place.country, 'fr')").format(""), "NULL as country in "),
    "a row twice": (ORDERS.format("") + ", range(2)", "gives a row twice: event"),
    "an event of its own": (ORDERS.replace("SELECT event", "SELECT event + 9000 AS event").format(""), "does not hold"),
    "a cell that closes twice": (
        ORDERS.replace("opens + 10000 AS closes", "ordered_at AS closes").format(""),
        "at two times",
    ),
    "a cell that closes before it opens": (
        ORDERS.replace("opens + 10000 AS closes", "opens - 10000 AS closes").format(""),
        "has a cell that closes before it opens: country",
    ),
    "a cell that may close": (
        ORDERS.replace("opens + 10000 AS closes", "CASE WHEN pieces > 5 THEN 1 END AS closes").format(""),
        "at two times",
    ),
    "all the time there is": (
        ORDERS.format(
            ", (SELECT count(*) FROM range(10000000) a, range(1000000) b WHERE a.range % 7 = b.range % 11) AS n"
        ),
        "did not end within 1 s",
    ),
    "all the memory there is": (
        ORDERS.format(", (SELECT count(*) FROM (SELECT DISTINCT range FROM range(100000000))) AS n"),
        "more than the 64 MiB",
    ),
}
EVENTS_OF_PYTHON = EVENTS

BAD_FOLDS = {
    "a float": (FOLD.format("avg(amount) AS cents"), "gives cents as DOUBLE"),
    "a decimal": (FOLD.format("sum(amount) AS cents"), "smallest unit"),
    "a text": (FOLD.format("'7' AS cents"), "gives cents as VARCHAR"),
    "NULL": (FOLD.format("nullif(count(*), count(*)) AS cents"), "NULL as cents in"),
    "a column less": ("SELECT country, opens FROM cells", "the columns country, opens; expected are"),
    "a column more": (FOLD.format("1 AS cents, 2 AS more"), "cents, more; expected are"),
    "a key twice": ("SELECT country, opens, 1 AS cents FROM cells", "gives the cell country de, opens"),
    "too large a number": (FOLD.format("sum(9223372036854775807) AS cents"), "out of range"),
    "chance": (FOLD.format("CAST(sum(1000 * random()) AS BIGINT) AS cents"), "two answers to the same events"),
    "the first that comes": (FOLD.format("CAST(100 * first(amount) AS BIGINT) AS cents"), "two answers"),
    "the order of events": (FOLD.format("CAST(100 * arg_max(amount, event) AS BIGINT) AS cents"), "two answers"),
    "the events themselves": ("SELECT * FROM events", "can't be run by DuckDB"),
}
LIMITS = Limits(deadline_s=1, memory_mib=64)


@pytest.mark.parametrize("name", BAD_CELLS)
def test_cells_that_can_not_be_judged_are_refused(name):
    cells, sentence = BAD_CELLS[name]
    question = Question(cells, FOLD.format("count(*) AS cents"), KEYS, {"cents": "count"}, step_ms=WINDOW_MS)

    with pytest.raises(MistakeError) as error:
        Oracle(question, limits=LIMITS if "time" in name else replace(LIMITS, deadline_s=60)).cells(EVENTS)

    assert sentence in str(error.value)
    assert str(error.value).startswith("[oracle] cells ")


@pytest.mark.parametrize("name", BAD_FOLDS)
def test_a_fold_that_can_not_be_judged_is_refused(name):
    fold, sentence = BAD_FOLDS[name]
    question = Question(ORDERS.format(", amount"), fold, KEYS, {"cents": "sum"}, step_ms=WINDOW_MS)

    with pytest.raises(MistakeError) as error:
        answered_twice(question, {}, EVENTS, "ordered_at")

    assert sentence in str(error.value)
    assert str(error.value).startswith("[oracle] fold ")


@pytest.mark.parametrize(("least", "fits"), [(0, False), (-7, False), (1, True)])
def test_what_grows_is_never_less_than_what_is_not_there(least, fits):
    fold = FOLD.format(f"{least} + count(*) - count(*) AS most")
    question = Question(ORDERS.format(", amount"), fold, KEYS, {"most": "monotone"}, step_ms=WINDOW_MS)
    if fits:
        assert len(answered_twice(question, {}, EVENTS, "ordered_at"))
        return
    with pytest.raises(MistakeError, match=f"the most {least}; a monotone value is 1 or more"):
        answered_twice(question, {}, EVENTS, "ordered_at")


def test_windows_that_do_not_move_with_their_events_are_refused():
    """The epoch of a run is a multiple of the step; windows of another size would be other ones in each run."""
    question = replace(TUMBLING, step_ms=2500)

    with pytest.raises(MistakeError, match=r"a `step_ms` that is no\s+multiple of the windows' own"):
        answered_twice(question, {}, EVENTS, "ordered_at")


def test_a_column_that_is_a_word_of_sql_is_named():
    events = EVENTS.rename_columns(["end" if name == "pieces" else name for name in EVENTS.column_names])

    with pytest.raises(MistakeError, match="'end' is a word of SQL: as a column it is written \"end\""):
        Oracle(replace(TUMBLING, cells="SELECT event, end FROM events")).cells(events)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 9)), min_size=1, max_size=24))
@settings(max_examples=20)
def test_events_of_one_moment_lie_in_one_session(events):
    """Whichever of them DuckDB sorts first: sessions here are ten seconds apart, and most events begin one."""
    question = Question(
        cells="",
        fold="SELECT k, opens, max(x) AS x, count(*) AS n FROM cells GROUP BY ALL",
        keys=("k", "opens"),
        values={"x": "monotone", "n": "count"},
        merge=True,
    )
    opens = np.array([10_000 * second for second, _ in events])
    cells = pa.table({"k": ["k"] * len(opens), "opens": opens, "closes": opens + 1400, "x": [x for _, x in events]})
    expected = defaultdict(list)
    for second, x in events:
        expected[10_000 * second].append(x)

    found = {row["opens"]: (row["x"], row["n"]) for row in Oracle(question).fold(cells).to_pylist()}

    assert found == {at: (max(xs), len(xs)) for at, xs in expected.items()}
