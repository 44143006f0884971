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


def test_three_times_the_events_take_hardly_more_memory(little_at_once, tmp_path):
    few, many = (peak_of(stored_run(tmp_path / str(events), events)) for events in (FEW, MANY))

    assert (many - few) / (MANY - FEW) < MOST_OCTETS
