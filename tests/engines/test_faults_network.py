"""Harm to the network in whole runs: what is executed and never answered, and who counts it twice."""

from __future__ import annotations

import pytest

from tests.engines.test_runs import check, run

pytestmark = pytest.mark.timeout(400)
SHORT = ("--duration", "20s", "--rate", "1000", "--campaigns", "20")


@pytest.mark.thorough
def test_a_retrying_connection_counts_a_pipeline_twice_and_nothing_has_crashed(tmp_path):
    fault = "redis-reset-reply@offset>=20%"
    answer = run(tmp_path, "calm", *SHORT, "--sink", "increment-retrying", "--fault", fault)

    assert (answer["verdict"], answer["words"]) == ("FAIL", ["duplicated"]), answer["sentence"]
    assert "HINCRBY" in check(answer, "fault")["sentence"]
    history = next(tmp_path.glob("*/history.jsonl")).read_text()
    assert '"kind":"restart"' not in history


@pytest.mark.thorough
def test_a_half_applied_pipeline_of_increments_is_counted_twice_by_the_part_that_was_applied(tmp_path):
    answer = run(tmp_path, "calm", *SHORT, "--sink", "increment", "--fault", "net-limit(bytes=1000)@offset>=20%")

    assert (answer["verdict"], answer["words"]) == ("FAIL", ["duplicated"]), answer["sentence"]
    assert "that were never answered" in check(answer, "fault")["sentence"]


def test_the_reference_survives_all_that_a_network_does_to_both_of_its_links(tmp_path):
    plan = (
        "redis-reset-reply@t>=2s; net-latency(link=kafka, for=1s)@t>=+1s; net-reset(link=kafka)@t>=+1s; "
        "net-slice(for=1s)@t>=+1s; net-blackhole(for=1s)@t>=+1s"
    )
    answer = run(tmp_path, "calm", *SHORT, "--engine", "reference", "--fault", plan)

    assert (answer["verdict"], answer["slack"]) == ("PASS", 0), answer["sentence"]
