"""Rows by their groups: the same as numpy's own sorts say."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from harness.judging.grouping import by_groups, numbered

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
