"""What a whole log is counted by: quick ways must say what the plain ones say."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from harness.evidence.observed import LogEvents


def log_events(partition, offset):
    zeros = np.zeros(len(offset), dtype=np.int64)
    return LogEvents(np.array(partition, dtype=np.int16), np.array(offset, dtype=np.int64), zeros, zeros, zeros, zeros)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), max_size=30), st.data())
def test_rows_of_one_record_count_once(places, data):
    places = sorted(places)
    events = log_events([p for p, _ in places], [o for _, o in places])
    rows = np.array(data.draw(st.lists(st.booleans(), min_size=len(places), max_size=len(places))), dtype=np.bool_)

    assert events.records() == len(set(places))
    assert events.records(rows) == len({place for place, own in zip(places, rows, strict=True) if own})
