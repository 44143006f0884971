"""What a whole log is counted by: quick ways must say what the plain ones say."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from generators.schedule import Schedule
from harness.evidence.observed import LogEvents
from harness.judging import log_audit
from tests.quick.cases import SPEC


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


@given(st.lists(st.integers(0, 99), min_size=1, max_size=40), st.booleans())
def test_events_of_a_server_are_counted_near_to_each_other_and_far_apart(slots, far):
    schedule = Schedule(SPEC.tape)
    slots = [slot * (schedule.server_total(0) // 100 if far else 1) for slot in slots]
    ids = np.array(slots, dtype=np.int64)
    balance, plain = (np.zeros(schedule.total, dtype=np.int16) for _ in range(2))
    log_audit._count(balance, schedule, ids)
    np.add.at(plain, schedule.places(ids), 1)

    assert balance.tolist() == plain.tolist()
