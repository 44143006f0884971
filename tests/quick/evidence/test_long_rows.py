"""Rows that may be more than memory holds: what is read again is what was written, and order and sums are exact."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.evidence import grouping, long_rows
from harness.evidence.long_rows import Ascending, Distinct, Rows, ordered

SAME_FIXTURES = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
PAIR = np.dtype([("group", np.int32), ("place", np.int64)])


@pytest.fixture(params=["in memory", "in a file"])
def few_at_once(request, monkeypatch):
    monkeypatch.setattr(grouping, "ROWS_AT_ONCE", 300)
    monkeypatch.setattr(long_rows, "BYTES_HELD", 1 << 24 if request.param == "in memory" else 1000)


def in_parts(values, often=7):
    return np.array_split(values, often)


@pytest.mark.parametrize("count", [0, 1, 299, 300, 301, 4097, 99_991])
def test_a_sum_is_that_of_numpy_to_the_bit(few_at_once, tmp_path, count):
    values = np.random.default_rng(count).exponential(300.0, count)
    rows = Rows(np.float64, tmp_path)
    for part in in_parts(values):
        rows.add(part)

    assert rows.total() == values.sum()
    assert np.concatenate([*rows.parts()]).tolist() == values.tolist()
    assert not [*tmp_path.iterdir()], "the file has no name"


@pytest.mark.parametrize("count", [1, 300, 4097, 30_011])
def test_numbers_are_in_order_and_their_mean_is_that_of_the_sorted_array(few_at_once, tmp_path, count):
    values = np.random.default_rng(count).normal(50.0, 400.0, count).round(3)
    found, wanted = Ascending(in_parts(values), tmp_path), np.sort(values)

    assert [found[rank] for rank in range(0, count, max(1, count // 50))] == wanted[:: max(1, count // 50)].tolist()
    assert (len(found), found[count - 1], found.mean()) == (count, wanted[-1], wanted.mean())


@SAME_FIXTURES
@given(group=st.lists(st.integers(0, 9), max_size=1000))
def test_rows_come_by_group_and_in_a_group_as_they_were(few_at_once, tmp_path, group):
    rows = np.empty(len(group), dtype=PAIR)
    rows["group"], rows["place"] = group, np.arange(len(group))
    parts = ((part["group"], part) for part in in_parts(rows))
    counts = np.bincount(rows["group"], minlength=10)
    made = ordered(parts, counts, Rows(PAIR, tmp_path), lambda some: some[np.argsort(some["group"], kind="stable")])

    assert np.concatenate([*made.parts()])["place"].tolist() == np.argsort(rows["group"], kind="stable").tolist()


@SAME_FIXTURES
@given(parts=st.lists(st.lists(st.integers(-5, 500), unique=True), max_size=9))
def test_distinct_values_are_each_kept_once(few_at_once, parts):
    found = Distinct()
    for part in parts:
        found.add(np.array(part, dtype=np.int64))

    assert found.sorted().tolist() == sorted({value for part in parts for value in part})
