"""Quix Streams on a real Kafka and a real Redis."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.services.kafka import topic_ids
from tests.engines.late_drops import NO_GRACE, late_in_any_order, left_out, told_by_the_engine
from tests.engines.odd import odd_records
from tests.engines.test_runs import check, run
from tests.engines.trial import START_MS, WINDOW_MS

ENGINE = ["--engine", "quix"]
SHORT = ["--duration", "12s", "--rate", "3000"]
# With less of it an engine that catches up may drop events, by right: see the runs without grace below.
GRACE = ["--watermark", "60s"]

# What plain `test` runs is Spark and the reference.
pytestmark = [pytest.mark.thorough, pytest.mark.timeout(400)]


def test_it_counts_what_counts_and_survives_the_rest(trial, started):
    ad = next(iter(trial.ads))
    for _, record, counts in odd_records(ad, START_MS):
        trial.send_record(record, (trial.ads[ad], START_MS // WINDOW_MS * WINDOW_MS) if counts else None)
    trial.send(5000)
    engine = started("quix", "highest")
    trial.await_drained(engine)

    engine.stop()

    assert trial.results() == trial.expected()
    assert engine.notes() == ()


def test_killed_in_the_middle_it_goes_on_and_is_exact(tmp_path, kafka_address):
    answer = run(tmp_path, *ENGINE, *SHORT, *GRACE, "--fault", "kill@offset=50%", "--kafka", kafka_address.bootstrap)

    assert (answer["verdict"], answer["slack"]) == ("PASS", 0), answer["sentence"]
    name = Path(answer["run"]).name
    assert not [each for each in topic_ids(kafka_address) if name in each], "what it made for itself goes with the run"


def test_it_survives_a_storm(tmp_path):
    answer = run(tmp_path, *ENGINE, *SHORT, "--disorder", "storm", "--fault", "kill@offset=50%")

    assert answer["verdict"] == "PASS", answer["sentence"]


def test_without_grace_a_pause_loses_what_came_late_and_the_number_is_the_engines_own(tmp_path):
    answer = run(tmp_path, NO_GRACE, *ENGINE, "--fault", "pause(for=6s)@t>=7s")

    late = check(answer, "late")
    assert (answer["verdict"], answer["words"]) == ("FAIL", ["late-dropped"]), answer["sentence"]
    assert late["count"] == left_out(answer["run"]) == told_by_the_engine(answer["run"])
    assert late["count"] >= late_in_any_order(answer["run"]) > 0


def test_without_grace_a_kill_loses_what_came_late_to_the_single_event(tmp_path):
    answer = run(tmp_path, NO_GRACE, *ENGINE, "--fault", "kill@offset=75%")

    assert (answer["verdict"], answer["words"]) == ("FAIL", ["late-dropped"]), answer["sentence"]
    assert check(answer, "late")["count"] == left_out(answer["run"]) >= late_in_any_order(answer["run"]) > 0
