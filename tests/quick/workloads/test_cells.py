"""Codes of cells: keys and fields come back as they were, whatever somebody wrote into the results."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from workloads.cells import FAR, MOST_KEYS, Codes

KEYS = st.integers(0, MOST_KEYS - 1)
FIELDS = st.integers(0, 2**43) | st.integers(FAR - 3, FAR + 3) | st.integers(-(2**63), 2**63 - 1)
CELLS = st.lists(st.tuples(KEYS, FIELDS), max_size=50)


@given(CELLS, st.booleans())
def test_a_code_is_one_cell_and_no_other(cells, first_alone):
    codes = Codes()
    keys, fields = (np.array([cell[n] for cell in cells], dtype=np.int64) for n in (0, 1))
    alone = [codes.one(*cell) for cell in cells] if first_alone else None
    together = codes.of(keys, fields)

    assert (alone or [codes.one(*cell) for cell in cells]) == together.tolist()
    assert [(codes.key(code), codes.field(code)) for code in together.tolist()] == cells
    assert codes.keys(together).tolist() == keys.tolist()
    assert codes.fields(together).tolist() == fields.tolist()
    assert len(set(together.tolist())) == len(set(cells))
    assert (together >= 0).all()
