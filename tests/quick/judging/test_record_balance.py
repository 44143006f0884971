"""Counting the records of each planned event in a bit, held against counting them in an array."""

from __future__ import annotations

import numpy as np
import pytest

from harness.judging import record_balance
from harness.judging.record_balance import RecordBalance

TOTAL = 1003


@pytest.fixture(autouse=True)
def few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_balance, "AT_ONCE", 100)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("tasks", [1, 3])
def test_it_is_what_an_array_of_counts_holds(seed: int, tasks: int):
    draws = np.random.default_rng(seed)
    parts = [draws.integers(0, TOTAL, draws.integers(0, 400)) for _ in range(4)]
    instead = draws.choice(TOTAL, 30, replace=False)
    copied = draws.integers(0, TOTAL, 30)
    plain = np.full(TOTAL, -1)
    balances = [RecordBalance(TOTAL) for _ in range(tasks)]
    for number, part in enumerate(parts):
        np.add.at(plain, part, 1)
        balances[number % tasks].add(part)
    balance, *others = balances
    for other in others:
        balance.merge(other)
    np.add.at(plain, instead, 1)
    np.add.at(plain, copied, -1)
    balance.plan(instead, copied)

    assert np.array_equal(balance.of(np.arange(TOTAL)), plain)
    places, unlike = (np.concatenate(each) for each in zip(*balance.unequal(), strict=True))
    assert np.array_equal(places, np.flatnonzero(plain))
    assert np.array_equal(unlike, plain[places])


def test_a_log_that_holds_each_event_once_is_balanced():
    nothing = np.zeros(0, dtype=np.int64)
    balance = RecordBalance(TOTAL)
    balance.add(nothing)
    for part in np.array_split(np.random.default_rng(1).permutation(TOTAL), 7):
        balance.add(part)
    balance.plan(nothing, nothing)
    assert not sum(len(places) for places, _ in balance.unequal())
