"""The algebra of ledgers, and what is outside an interval."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harness.evidence.ledger import Expectation, Ledger

CELLS = st.integers(0, 40)
LEDGERS = st.dictionaries(CELLS, st.integers(1, 50)).map(Ledger)


@given(LEDGERS, LEDGERS, LEDGERS)
def test_addition_is_associative_commutative_and_undone_by_subtraction(a, b, c):
    assert dict((a + b) + c) == dict(a + (b + c))
    assert dict(a + b) == dict(b + a)
    assert dict(a + b - b) == dict(a)


@given(LEDGERS, LEDGERS)
def test_two_are_equal_whatever_they_were_made_of(a, b):
    assert (a + b).equals(b + a)
    assert a.equals(b) == (a == b) == (dict(a) == dict(b))


@given(LEDGERS)
def test_zero_counts_are_forgotten(a):
    assert dict(a - a) == {}
    assert (a - a).total == 0


@given(LEDGERS, st.dictionaries(CELLS, st.integers(-9, 9).filter(bool), max_size=8))
def test_differences_name_exactly_the_cells_that_were_changed(truth, changes):
    changes = {cell: by for cell, by in changes.items() if truth.count(cell) + by >= 0}
    seen = truth + Ledger(changes)

    found = Expectation(truth, truth).differences(seen)

    assert {d.cell: d.surplus for d in found} == changes


@given(LEDGERS, LEDGERS, st.data())
def test_nothing_inside_the_interval_is_a_difference_and_its_width_is_the_slack(must, room, data):
    expectation = Expectation(must, must + room)
    seen = Ledger({cell: data.draw(st.integers(must.count(cell), high)) for cell, high in expectation.may.items()})

    assert expectation.differences(seen) == []
    assert expectation.slack == room.total


@given(st.integers(-9, 9).filter(bool), st.integers(-9, 9))
def test_a_sum_that_need_not_be_there_lies_between_nothing_and_itself(value, seen):
    """As in a cell that nothing has closed: it may be negative."""
    expectation = Expectation(Ledger(), Ledger({1: value}))

    assert bool(expectation.differences(Ledger({1: seen}))) is not (min(0, value) <= seen <= max(0, value))
