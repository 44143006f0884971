"""The other engines on Spark: as a batch, with a state of its own, parsed in Python, and on another version."""

from __future__ import annotations

import json

import pytest

from tests.engines.odd import send_odd_records
from workloads.ad_impressions.jobs.spark_parse import BEST

SINK = "absolute"

# What plain `test` runs is Spark and the reference.
pytestmark = [pytest.mark.thorough, pytest.mark.timeout(900)]  # on first use an environment is made


def test_a_batch_counts_the_whole_topic_anew_and_survives_a_kill(trial, started):
    send_odd_records(trial)
    engine = started("spark-batch", SINK)
    trial.send(5_000, late_ms=60_000)
    trial.await_drained(engine)

    report = trial.suffer(engine, SINK, "kill@offset=50%", total=12_000)
    trial.await_drained(engine)
    engine.stop()

    assert (report.landed, report.healed) == (True, True), report.proof
    assert trial.results() == trial.expected()
    assert engine.exit_code() == 0


@pytest.mark.parametrize("name", ["spark-tws", "spark-pandas", "spark@4.0.1"])
def test_totals_are_exact_to_the_single_late_event_after_a_kill(trial, started, name):
    send_odd_records(trial)
    trial.send(5_000)
    engine = started(name, SINK)
    trial.await_drained(engine)
    report = trial.suffer(engine, SINK, "kill@c3:batch=2")
    trial.send_in_batches(engine, 5)
    trial.assert_exact(engine)

    told = json.loads((trial.folder / "engine_settings.json").read_text())
    assert told["streamgauge.parser"] == ("pandas" if name == "spark-pandas" else BEST)
    assert (report.landed, report.replayed) == (True, True), report.proof
