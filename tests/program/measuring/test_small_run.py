"""What is measured of a stored run, on one small run of the fake engine."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from harness.evidence import grouping, long_rows, observed
from harness.judging import verdict_file
from harness.judging.judge import judge
from harness.judging.stored_run import StoredRun
from harness.measuring import backlog_catch_up, measure
from harness.measuring.latency import evidence
from harness.measuring.measurement import CatchUp, Lack, Quantity
from harness.measuring.timeline import Lines
from harness.measuring.worth import Behind
from harness.model import FaultReport
from harness.rundir.store import Store
from harness.selftest.runs import fake_run


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Store:
    return fake_run(tmp_path_factory.mktemp("small"))[1]


@pytest.fixture
def run(store) -> StoredRun:
    return StoredRun(store)


def test_a_timeline_holds_the_latency_of_its_own_seconds(run):
    lines = Lines(run)
    second = [-1, 0, 3, lines.seconds - 1, lines.seconds]
    told = pa.table({"second": second, "p50_ms": [float(n) for n in range(5)], "p99_ms": [n + 0.5 for n in range(5)]})

    columns = lines.latency(told)

    for name, more in (("latency_p50_ms", 0.0), ("latency_p99_ms", 0.5)):
        known = np.flatnonzero(np.isfinite(columns[name]))
        assert known.tolist() == [0, 3, lines.seconds - 1]
        assert columns[name][known].tolist() == [1 + more, 2 + more, 3 + more]


def test_each_due_and_sent_time_stays_with_its_event(run):
    found = evidence.collect(run)
    ((_, events),) = found.events.parts()
    planned = ~events.mark
    begins_ms = run.oracle.begins_ms(found.cells.code)[events.cell[planned]]
    due_ms, sent_ms = (at_us[planned] // 1000 for at_us in (events.due_us, events.sent_us))

    assert len(due_ms) > 100
    assert ((due_ms >= begins_ms) & (due_ms < begins_ms + run.spec.window_ms)).all()
    assert (np.abs(sent_ms - due_ms) < run.spec.window_ms).all()


@pytest.mark.parametrize(
    ("caught_up", "until_s", "end"),
    [(Quantity(7.5), 8.0, "it had caught up"), (Quantity(None, lack=Lack.NEVER), None, "all was done")],
)
def test_other_orders_are_judged_until_it_had_caught_up_or_to_the_end(run, monkeypatch, caught_up, until_s, end):
    """What comes behind that is a steady load, which says nothing of how fast they work off what waits."""
    seen = list[Behind]()

    def of_changes(_faults: tuple[FaultReport, ...], _epoch_ms: int, behind: Behind) -> tuple[()]:
        seen.append(behind)
        return ()

    monkeypatch.setattr(backlog_catch_up, "of_changes", of_changes)
    lines = Lines(run)
    list(backlog_catch_up._reconfigurations(run, lines, 0.5, caught_up, 12))

    assert [(each.started_s, each.until_s, each.end) for each in seen] == [(0.5, until_s or lines.seconds, end)]


@pytest.mark.parametrize(("caught_up", "is_tested"), [(Quantity(7.5), True), (Quantity(None, lack=Lack.NEVER), False)])
def test_an_engine_that_is_still_behind_is_in_no_steady_state(run, monkeypatch, caught_up, is_tested):
    """Hardly anything of a backlog of millions changes in a minute."""
    found = CatchUp(100_000_000, 1000.0, 0.5, caught_up, caught_up, None, None)
    monkeypatch.setattr(backlog_catch_up, "of_run", lambda *_: found)

    measured = measure.measure(run, judge(run)).measurement

    assert measured is not None
    assert (measured.steady is not None) is is_tested


def test_the_events_of_a_run_are_freed_when_its_evidence_is_collected(run):
    assert len(run.countable.events)
    evidence.collect(run)

    assert "counted" not in vars(run)


def test_copies_and_faults_are_measured_alike_in_parts_and_at_once(tmp_path, monkeypatch):
    """The copies of an event may be in different parts of the log."""
    _, store = fake_run(tmp_path, disorder="storm", fault="kill@c3:batch=3")
    names = ("verdict.json", "measurement.json", "recovery.json", "latency.parquet", "timeline.parquet")

    def answers() -> dict[str, bytes]:
        run = StoredRun(store)
        verdict_file.keep(store, verdict := judge(run))
        assert run.audit.again.size
        measure.save(run, verdict)
        return {name: (store.path / name).read_bytes() for name in names}

    at_once = answers()
    for module in (grouping, observed):
        monkeypatch.setattr(module, "ROWS_AT_ONCE", 300)
    monkeypatch.setattr(long_rows, "BYTES_HELD", 1_000)

    assert answers() == at_once
