"""The memory of judging and measuring goes with cells and slices, and not with events."""

from __future__ import annotations

import tracemalloc

import pytest

from harness.evidence import grouping, long_rows, observed
from harness.judging.judge import judge
from harness.judging.stored_run import StoredRun
from harness.measuring import measure
from harness.rundir.store import Store
from tools.bench.bench_stored import stored_run

FEW, MANY = 100_000, 300_000
MOST_OCTETS = 2  # for each further event, of which a third count
IN_MEMORY_OCTETS = 20  # if all rows stay in memory, more than that


@pytest.fixture
def little_at_once(monkeypatch):
    monkeypatch.setattr(grouping, "ROWS_AT_ONCE", 5_000)
    monkeypatch.setattr(observed, "ROWS_AT_ONCE", 5_000)
    monkeypatch.setattr(long_rows, "BYTES_HELD", 50_000)


def peak_of(store: Store) -> int:
    tracemalloc.start()
    try:
        run = StoredRun(store)
        assert run.audit.found  # it works on blocks of the tape, which are larger than all of this run
        tracemalloc.reset_peak()
        assert measure.save(run, judge(run)) is not None
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    return [stored_run(tmp_path_factory.mktemp(str(events)), events) for events in (FEW, MANY)]


def for_a_further_event(stores: list[Store]) -> float:
    few, many = map(peak_of, stores)
    return (many - few) / (MANY - FEW)


def test_further_events_take_hardly_more_memory(little_at_once, stores):
    assert for_a_further_event(stores) < MOST_OCTETS


def test_they_would_if_their_rows_stayed_in_memory(little_at_once, stores, monkeypatch):
    monkeypatch.setattr(long_rows, "BYTES_HELD", 1 << 30)
    assert for_a_further_event(stores) > IN_MEMORY_OCTETS
