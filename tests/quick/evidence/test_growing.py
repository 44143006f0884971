"""A column that grows is what its parts are, joined."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from harness.evidence import column_buffer
from harness.evidence.column_buffer import Growing


@given(st.lists(st.lists(st.integers(-5, 5), max_size=9), min_size=1), st.integers(1, 7))
def test_it_holds_its_parts_one_after_the_other(parts, step):
    column = Growing()
    usual, column_buffer.STEP = column_buffer.STEP, step
    for part in parts:
        column.add(np.array(part, dtype=np.int16))
    column_buffer.STEP = usual

    assert column.finish().tolist() == [value for part in parts for value in part]


def test_it_gets_as_wide_as_its_widest_part():
    column = Growing()
    for part in (np.array([1, 2], dtype=np.int32), np.array([2**40]), np.array([3], dtype=np.int32)):
        column.add(part)

    whole = column.finish()

    assert whole.tolist() == [1, 2, 2**40, 3]
    assert whole.itemsize == 8
