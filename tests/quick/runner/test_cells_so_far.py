"""How cells stand while a run goes on. It is no verdict, and says so."""

from __future__ import annotations

import numpy as np
import pytest

from harness.runner.cells_so_far import CellsSoFar, Stands, ranges, standing
from reports.live.state import STANDS, unranged
from tests.quick.cases import SPEC
from workloads.base import Kind, Totals
from workloads.registry import oracle_of

WINDOW_MS = 1_750_000_000_000


@pytest.mark.parametrize(
    ("kind", "planned", "seen", "stands"),
    [
        (Kind.COUNT, 3, 0, Stands.OPEN),
        (Kind.COUNT, 3, 2, Stands.OPEN),
        (Kind.COUNT, 3, 3, Stands.RIGHT),
        (Kind.COUNT, 3, 4, Stands.TOO_MANY),
        (Kind.COUNT, None, 1, Stands.WRONG),
        (Kind.COUNT, None, 0, Stands.OPEN),
        (Kind.MONOTONE, 30, 40, Stands.TOO_MANY),
        (Kind.SUM, 30, 40, Stands.OPEN),  # the next event may take ten away
        (Kind.RANKED, 1, 2, Stands.OPEN),
        (Kind.PER_EVENT, 5, 0, Stands.OPEN),
        (Kind.PER_EVENT, 5, 6, Stands.WRONG),
        (Kind.MATCH, 1, 2, Stands.TOO_MANY),
    ],
)
def test_how_a_cell_stands(kind, planned, seen, stands):
    assert standing(kind, planned, seen) is stands


def test_a_session_that_nobody_planned_may_still_merge_with_another():
    assert standing(Kind.COUNT, None, 1, merges=True) is Stands.OPEN


def changes(*rows: tuple[int, int, int]) -> dict[str, np.ndarray]:
    columns = zip(*rows, strict=True) if rows else ((), (), ())
    named = zip(("campaign", "window_ms", "count"), columns, strict=True)
    return {name: np.array(column, dtype=np.int64) for name, column in named}


def cells(*keys: int) -> CellsSoFar:
    oracle = oracle_of(SPEC)
    code = np.array([oracle.codes.one(key, WINDOW_MS) for key in range(3)])
    return CellsSoFar(oracle, keys or range(3), Totals(code, np.array([1, 2, 3])))


def test_changes_say_which_cells_stand_differently():
    so_far = cells()
    assert so_far.all() == [(WINDOW_MS, Stands.OPEN, "0-2")]
    assert so_far.take(changes((0, WINDOW_MS, 1), (1, WINDOW_MS, 1))) == [(WINDOW_MS, Stands.RIGHT, "0")]
    assert so_far.take(changes((1, WINDOW_MS, 3), (7, WINDOW_MS, 1))) == [
        (WINDOW_MS, Stands.TOO_MANY, "1"),
        (WINDOW_MS, Stands.WRONG, "7"),
    ]
    assert so_far.take(changes((1, WINDOW_MS, 3))) == []
    assert so_far.numbers == {"open": 1, "right": 1, "too_many": 1, "wrong": 1}
    assert (so_far.visible, so_far.planned_visible, so_far.visible_is) == (5, 6, "events")


def test_a_count_that_vanished_is_no_longer_visible():
    so_far = cells()
    so_far.take(changes((2, WINDOW_MS, 3)))
    so_far.take(changes((2, WINDOW_MS, 0)))

    assert so_far.visible == 0
    assert so_far.numbers["right"] == 0


def test_keys_that_are_not_polled_are_not_expected():
    assert cells(0, 2).all() == [(WINDOW_MS, Stands.OPEN, "0,2")]


def test_sentinel_records_are_expected_too():
    so_far = cells()
    oracle = so_far._oracle
    ours = Totals(np.array([oracle.codes.one(0, 0)]), np.array([4]))
    assert so_far.also(ours) == [(0, Stands.OPEN, "0")]
    assert so_far.take(changes((0, 0, 4))) == [(0, Stands.RIGHT, "0")]
    assert (so_far.visible, so_far.planned_visible) == (0, 6)


@pytest.mark.parametrize("numbers", [(), (4,), (0, 1, 2, 9), (3, 1, 1, 2)])
def test_ranges_can_be_read_again(numbers):
    assert [*unranged(ranges(numbers))] == sorted(set(numbers))


def test_the_page_has_the_same_names_in_the_same_order():
    assert [each.name.lower().replace("_", " ") for each in Stands] == list(STANDS)
