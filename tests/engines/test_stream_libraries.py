"""Kafka Streams and Quix Streams, libraries of Kafka's clients, on a real Kafka and a real Redis."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.services.kafka import topic_ids
from tests.engines.late_drops import NO_GRACE, late_in_any_order, left_out, told_by_the_engine
from tests.engines.odd import send_odd_records
from tests.engines.test_runs import check, run

ENGINES = ("kafka-streams", "quix")
KAFKA_STREAMS = ["--engine", "kafka-streams"]
SHORT = ["--duration", "12s", "--rate", "3000"]
# With less of it an engine that catches up may drop events, by right: see the runs without grace below.
GRACE = ["--watermark", "60s"]

# What plain `test` runs is Spark and the reference.
pytestmark = [pytest.mark.thorough, pytest.mark.timeout(400)]


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> list[str]:
    return ["--engine", request.param]


@pytest.mark.parametrize("name", ENGINES)
def test_it_counts_what_counts_and_survives_the_rest(trial, started, name):
    send_odd_records(trial)
    trial.send(5000)
    engine = started(name, "highest")
    trial.await_drained(engine)

    engine.stop()

    assert trial.results() == trial.expected()
    assert engine.notes() == ()


def test_killed_in_the_middle_it_goes_on_and_is_exact(tmp_path, kafka_address, engine):
    answer = run(tmp_path, *engine, *SHORT, *GRACE, "--fault", "kill@offset=50%", "--kafka", kafka_address.bootstrap)

    assert (answer["verdict"], answer["slack"]) == ("PASS", 0), answer["sentence"]
    name = Path(answer["run"]).name
    assert not [each for each in topic_ids(kafka_address) if name in each], "what it made for itself goes with the run"


def test_a_job_that_goes_on_with_another_question_counts_by_it_from_the_seam_on(tmp_path):
    fault = "change-job(by=ad, means=carry, stop=clean)@offset>=50%"
    answer = run(tmp_path, *KAFKA_STREAMS, *SHORT, *GRACE, "--fault", fault)

    assert answer["verdict"] == "PASS", answer["sentence"]
    assert "as declared (carry)" in answer["sentence"]


def test_it_survives_a_storm(tmp_path, engine):
    answer = run(tmp_path, *engine, *SHORT, "--disorder", "storm", "--fault", "kill@offset=50%")

    assert answer["verdict"] == "PASS", answer["sentence"]


def test_without_grace_a_pause_loses_what_came_late_and_the_number_is_the_engines_own(tmp_path, engine):
    answer = run(tmp_path, NO_GRACE, *engine, "--fault", "pause(for=6s)@t>=7s")

    late = check(answer, "late")
    assert (answer["verdict"], answer["words"]) == ("FAIL", ["late-dropped"]), answer["sentence"]
    assert late["count"] == left_out(answer["run"]) == told_by_the_engine(answer["run"])
    assert late["count"] >= late_in_any_order(answer["run"]) > 0


def test_without_grace_a_kill_loses_what_came_late_to_the_single_event(tmp_path, engine):
    answer = run(tmp_path, NO_GRACE, *engine, "--fault", "kill@offset=75%")

    assert (answer["verdict"], answer["words"]) == ("FAIL", ["late-dropped"]), answer["sentence"]
    assert check(answer, "late")["count"] == left_out(answer["run"]) >= late_in_any_order(answer["run"]) > 0


def test_asked_to_name_what_it_drops_it_leaves_nothing_to_infer(tmp_path):
    pause = ["--fault", "pause(for=6s)@t>=7s", "--conf", "streamgauge.late=named"]
    answer = run(tmp_path, NO_GRACE, *KAFKA_STREAMS, *pause)

    late = check(answer, "late")
    assert (answer["verdict"], answer["words"], answer["slack"]) == ("FAIL", ["late-dropped"], 0), answer["sentence"]
    assert "each named by the engine itself" in late["sentence"]
    assert late["count"] == left_out(answer["run"]) == told_by_the_engine(answer["run"])
    assert late["count"] >= late_in_any_order(answer["run"]) > 0
