"""Rows by their groups: the same as numpy's own sorts say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.evidence import grouping
from harness.evidence.grouping import by_groups, narrow, numbered, repeated, some_groups, spans

CODES = st.lists(st.one_of(st.integers(-3, 3), st.integers(-(2**62), 2**62)), max_size=50)


@given(CODES)
def test_codes_are_numbered_in_their_order(codes):
    known, place = numbered(np.array(codes, dtype=np.int64))
    unique, inverse = np.unique(np.array(codes, dtype=np.int64), return_inverse=True)

    assert known.tolist() == unique.tolist()
    assert place.tolist() == inverse.tolist()


@given(st.lists(st.tuples(st.integers(0, 3) | st.integers(0, 2**40), st.integers(-5, 5)), max_size=50))
def test_groups_come_in_order_and_rows_of_one_stay_in_theirs(rows):
    group, time = (np.array(column, dtype=np.int64) for column in (zip(*rows, strict=True) if rows else ([], [])))

    assert by_groups(group, np.argsort(time, kind="stable")).tolist() == np.lexsort((time, group)).tolist()


@pytest.fixture
def few_at_once(monkeypatch):
    monkeypatch.setattr(grouping, "ROWS_AT_ONCE", 3)


SAME_PATCH = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@SAME_PATCH
@given(rows=st.integers(0, 20))
def test_spans_hold_each_row_once_and_not_too_many_together(few_at_once, rows):
    found = [range(rows)[some] for some in spans(rows)]

    assert [row for some in found for row in some] == list(range(rows))
    assert all(len(some) <= 3 for some in found)


def test_a_group_that_is_too_large_is_worked_on_alone(few_at_once):
    assert list(some_groups(np.array([0, 1, 8, 8, 9, 11]))) == [range(1), range(1, 2), range(2, 5)]


@given(st.lists(st.integers(-1, 12), max_size=40))
def test_what_is_there_more_than_once_is_found(ids):
    assert repeated(np.array(ids, dtype=np.int64)).tolist() == sorted({each for each in ids if ids.count(each) > 1})


@pytest.mark.parametrize(("largest", "octets"), [(2**31 - 1, 4), (2**31, 8)])
def test_a_column_is_as_narrow_as_it_holds_all_of_it(largest, octets):
    column = narrow(np.array([0, largest]))

    assert (column.tolist(), column.itemsize) == ([0, largest], octets)
