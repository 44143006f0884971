"""The Spark engine killed at each crash point: the kill is proved, and the sinks keep or break their promise."""

from __future__ import annotations

import pytest

# The whole runs of test_runs.py, test_states.py and test_tables.py die at c2, c3 and c4.
pytestmark = [pytest.mark.thorough, pytest.mark.timeout(600)]


@pytest.mark.parametrize(("sink", "points"), [("absolute", ("c1", "c3", "c4")), ("fenced", ("c2",))])
def test_a_safe_sink_is_exact_whereever_it_dies(trial, started, sink, points):
    engine = started("spark", sink)
    for point in points:
        report = trial.suffer(engine, sink, f"kill@{point}:batch=2")
        assert report.landed, report.proof
        assert report.healed, report.proof
        assert report.replayed is (point != "c4"), report.proof
    trial.await_drained(engine)
    engine.stop()
    engine.collect()
    batches = engine.batch_log()

    assert batches is not None
    assert batches.complete, batches.note
    assert trial.results() == trial.expected(batches)
    assert sum(batch.replayed for batch in batches.batches) == sum(point != "c4" for point in points)


def test_increment_counts_exactly_the_replayed_batch_twice(trial, started):
    engine = started("spark", "increment")
    report = trial.suffer(engine, "increment", "kill@c3:batch=2")
    trial.await_drained(engine)
    engine.stop()
    engine.collect()
    batches = engine.batch_log()

    assert batches is not None
    assert report.replayed
    assert [batch.batch for batch in batches.batches if batch.replayed] == [report.batch]
    assert trial.results() - trial.expected() == trial.in_batch(batches, report.batch)
    assert trial.results() != trial.expected()
