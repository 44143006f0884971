"""Harm to Kafka in whole runs: what survives it passes, and the damage has its right name to the single event."""

from __future__ import annotations

import pytest

from tests.engines.test_runs import check, run

pytestmark = pytest.mark.timeout(600)
SHORT = ("--duration", "15s", "--rate", "1000", "--campaigns", "20")


def test_the_load_and_the_reference_survive_a_broker_that_is_killed(tmp_path):
    answer = run(tmp_path, "calm", *SHORT, "--engine", "reference", "--fault", "kafka-kill(for=5s)@t>=5s")

    assert (answer["verdict"], answer["slack"]) == ("PASS", 0), answer["sentence"]
    assert "ended with exit code -9, and nothing listens" in check(answer, "fault")["sentence"]


@pytest.mark.thorough
def test_records_deleted_under_spark_are_missing_to_the_single_event_when_it_does_not_care(tmp_path):
    careless = ("--conf", "streamgauge.source.failOnDataLoss=false")
    answer = run(tmp_path, "calm", *SHORT, "--sink", "fenced", *careless, "--fault", "kafka-delete-records@t>=5s")

    assert (answer["verdict"], answer["words"]) == ("FAIL", ["lost"]), answer["sentence"]
    assert ": exactly the " in check(answer, "lost")["sentence"]
    assert "partition 3 offsets " in check(answer, "lost")["sentence"]
    assert "removed by the planned fault" in check(answer, "log")["sentence"]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("conf", "verdict"),
    [((), "FAIL"), (("--conf", "streamgauge.source.kafka.isolation.level=read_committed"), "PASS")],
)
def test_spark_counts_what_was_aborted_unless_it_is_told_to_read_what_is_committed(tmp_path, conf, verdict):
    fault = ("--fault", "kafka-aborted-transaction(records=500)@t>=5s")
    answer = run(tmp_path, "calm", *SHORT, "--sink", "fenced", *conf, *fault)

    assert answer["verdict"] == verdict, answer["sentence"]
    if verdict == "FAIL":
        assert answer["words"] == ["duplicated"]
        assert "exactly the 500 of a transaction that was aborted" in answer["sentence"]
