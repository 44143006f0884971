"""Harm to Redis in whole runs: the damage has its right name, and what survives it passes."""

from __future__ import annotations

import pytest

from tests.engines.test_runs import check, run

pytestmark = pytest.mark.timeout(400)
SHORT = ("calm", "--duration", "15s", "--rate", "1000", "--campaigns", "20", "--window", "2s")


@pytest.mark.thorough
def test_what_only_an_emptied_redis_had_is_lost_from_sparks_totals_and_cells_touched_again_are_whole(tmp_path):
    answer = run(tmp_path, *SHORT, "--fault", "redis-restart-empty@offset>=60%")

    assert (answer["verdict"], answer["words"]) == ("FAIL", ["lost"]), answer["sentence"]
    assert "data from before is gone" in check(answer, "fault")["sentence"]
    assert {witness["seen"] for witness in check(answer, "lost")["witnesses"]} == {"0"}


def test_the_reference_stops_when_redis_is_gone_and_counts_all_of_the_log_again(tmp_path):
    answer = run(tmp_path, *SHORT, "--engine", "reference", "--fault", "redis-kill@t>=5s")

    assert (answer["verdict"], answer["slack"]) == ("PASS", 0), answer["sentence"]
    assert "data from before is gone" in check(answer, "fault")["sentence"]


@pytest.mark.thorough
def test_results_flushed_under_an_engine_that_does_not_notice_are_lost(tmp_path):
    answer = run(tmp_path, *SHORT, "--engine", "reference", "--fault", "redis-flush@t>=8s")

    assert (answer["verdict"], answer["words"]) == ("FAIL", ["lost"]), answer["sentence"]


@pytest.mark.thorough
def test_writes_that_wait_or_are_refused_for_a_while_change_no_count(tmp_path):
    plan = "redis-pause(for=1s)@t>=3s; redis-full(for=1s)@now"

    answer = run(tmp_path, *SHORT, "--engine", "reference", "--fault", plan)

    assert (answer["verdict"], answer["slack"]) == ("PASS", 0), answer["sentence"]


@pytest.mark.thorough
def test_somebody_else_who_reads_all_results_changes_no_count_and_says_how_long_that_took(tmp_path):
    answer = run(tmp_path, *SHORT, "--engine", "reference", "--fault", "repeat(2; read-results(for=3s)@t>=+2s)")

    assert (answer["verdict"], answer["slack"]) == ("PASS", 0), answer["sentence"]
    all_keys = 20 + 300  # of the campaigns, and of the probes that every scenario has beside them
    assert f"HGETALL of {all_keys} keys every 50 ms; it is answered; " in check(answer, "fault")["sentence"]
    assert " reads, p50 " in check(answer, "fault")["sentence"]
