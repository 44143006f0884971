"""Events of the harness itself: each one of its own, and in a cell, if need be together with others."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from harness.evidence.ledger import Ledger
from harness.judging.facts import by_the_tape
from harness.model import Sentinel, UsageError
from tests.quick.declared import TOML
from workloads.declared import checked
from workloads.declared.answers import DeclaredOracle
from workloads.declared.codec import DeclaredCodec, fewest
from workloads.declared.declaration import load
from workloads.sentinels import MarkBlock, as_events, closes_ms_of, group_of, mark, totals_of

EPOCH_MS = 1_767_225_600_000
# Orders of a buyer who bought something in the same window, of another shop.
PAIRS = """[oracle]
keys = ["country", "opens"]
step_ms = 10_000
cells = '''
WITH orders AS (SELECT *, place.country AS country, tumbling(ordered_at, 10000) AS opens FROM events)
SELECT event, country, opens, opens + 10000 AS closes FROM orders AS a
WHERE pieces > 6 AND EXISTS (FROM orders AS b WHERE b.pieces < 4 AND (a.buyer, a.opens) = (b.buyer, b.opens))
'''
fold = "SELECT country, opens, count(*) AS pairs FROM cells GROUP BY ALL"
[oracle.values]
pairs = "count"
"""


def asking(oracle: str) -> str:
    return TOML.split("[oracle]")[0] + oracle


@pytest.fixture
def pairs(tmp_path):
    (tmp_path / "workload.toml").write_text(asking(PAIRS))
    declared = load(tmp_path)
    return DeclaredOracle(declared, 5), DeclaredCodec(declared, 5)


def grouped(number: int) -> list[Sentinel]:
    return [mark(number + part, 0, 0, EPOCH_MS + part, "opening", group=number, part=part) for part in range(2)]


def test_where_one_event_lies_in_no_cell_two_do_together(pairs):
    oracle, codec = pairs
    first, second = grouped(0), grouped(8)

    assert codec.mark_size == 2
    assert not len(totals_of(oracle, codec, first[:1]).cell)
    assert not len(totals_of(oracle, codec, first[1:]).cell)
    assert totals_of(oracle, codec, first).value.tolist() == totals_of(oracle, codec, second).value.tolist() == [1]
    events = as_events(codec, [*first, *second])
    assert len({*zip(*(events[name] for name in codec.content), strict=True)}) == 4, "each is an event of its own"
    assert closes_ms_of(oracle, codec, first) == EPOCH_MS + 10_000
    assert closes_ms_of(oracle, codec, first[:1]) is None


def test_another_codec_of_the_seed_makes_the_same_marks(pairs, tmp_path):
    oracle, codec = pairs
    again = DeclaredCodec(load(tmp_path), 5)

    assert [again.mark(each) for each in reversed(grouped(8))] == [codec.mark(each) for each in reversed(grouped(8))]
    assert group_of(oracle, codec)


@pytest.mark.parametrize("wanted", [[0], [3, 700], [1, 2, 1023], list(range(9))])
def test_of_many_events_the_few_are_found_that_are_needed(wanted):
    assert fewest(1024, lambda rows: {*wanted} <= {*rows}) == wanted


def test_of_events_that_never_lie_in_a_cell_there_is_no_group():
    assert fewest(1024, lambda _: False) == []


@pytest.mark.parametrize(
    ("where", "why"),
    [
        (
            "WHERE pieces > 9",
            "of 1,024 that were drawn at a multiple of `step_ms` neither one alone nor all together do",
        ),
        ("WHERE ordered_at % 10000 > 5000", "Let windows begin there"),
    ],
)
def test_a_question_that_no_event_of_the_harness_can_open_is_refused_before_the_start(tmp_path, where, why):
    text = TOML.replace("FROM events\n'''", f"FROM events {where}\n'''")
    (tmp_path / "workload.toml").write_text(text)

    with pytest.raises(UsageError, match=why):
        checked.load(tmp_path)


def test_cells_of_one_name_are_refused(tmp_path):
    fields = 'a = { kind = "choice", values = ["x:y", "x"] }\nb = { kind = "choice", values = ["z", "y:z"] }\n'
    oracle = """[oracle]
keys = ["a", "b"]
cells = "SELECT event, a, b, NULL AS closes FROM events"
fold = "SELECT a, b, count(*) AS n FROM cells GROUP BY ALL"
[oracle.values]
n = "count"
"""
    text = TOML.split("[tables.shops]")[0].replace("[event.fields]\n", f"[event.fields]\n{fields}") + oracle
    (tmp_path / "workload.toml").write_text(text)

    with pytest.raises(UsageError, match=r"Two cells would be called 'x:y:z' in the results"):
        checked.load(tmp_path)


def test_a_mark_by_itself_is_the_first_of_its_group():
    assert (mark(7, 0, 0, EPOCH_MS, "between").group, mark(7, 0, 0, EPOCH_MS, "between").part) == (7, 0)


def test_a_mark_may_lie_in_a_cell_only_together_with_an_event_of_the_load(pairs):
    oracle, codec = pairs
    load, ours = grouped(0)
    schedule = SimpleNamespace(blocks=lambda: [MarkBlock.of(codec, [load], EPOCH_MS)])
    run: Any = SimpleNamespace(codec=codec, marks=[ours], epoch_ms=EPOCH_MS, schedule=schedule)

    assert [*by_the_tape(run, oracle, Ledger()).values()] == [1]
