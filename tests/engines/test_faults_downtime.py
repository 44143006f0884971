"""Whole runs in which Spark's checkpoint is edited, or its run config is changed, while it is down."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.engines.test_runs import check, run

SLOW_LOAD = ("calm", "--rate", "1000", "--duration", "40s", "--campaigns", "20")
# A limit for each batch drops nothing where the lateness is as long as what waits.
IN_STEPS = ("--watermark", "2m", "--conf", "streamgauge.source.maxOffsetsPerTrigger=10000")

# Plain `test` has the job of the tutorial, in test_runs.py: its commit is deleted while it is down.
pytestmark = [pytest.mark.thorough, pytest.mark.timeout(400)]


def test_a_fence_by_batch_number_loses_what_a_batch_has_more_when_it_is_planned_anew(tmp_path):
    answer = run(tmp_path, *SLOW_LOAD, "--sink", "fenced", "--fault", "checkpoint-delete-offsets@c3:batch=3")

    assert (answer["verdict"], answer["words"]) == ("FAIL", ["lost"]), answer["sentence"]
    assert "exactly what batch 3 had more " in answer["sentence"]
    assert "when planned anew: the checkpoint had lost the first run" in answer["sentence"]
    assert "with a new plan, up to" in check(answer, "fault")["sentence"]


def test_a_commit_that_is_gone_makes_increments_count_that_batch_once_more(tmp_path):
    answer = run(tmp_path, *SLOW_LOAD, "--sink", "increment", "--fault", "checkpoint-delete-commit@batch>=2")

    assert (answer["verdict"], answer["words"]) == ("FAIL", ["duplicated"]), answer["sentence"]
    assert "once more, which was replayed after checkpoint-delete-commit@batch>=2" in answer["sentence"]


def test_a_gap_in_the_plans_is_a_loud_stop_and_no_wrong_count(tmp_path):
    answer = run(tmp_path, *SLOW_LOAD, "--fault", "checkpoint-gap@batch>=2; change-trigger@now")

    assert (answer["verdict"], answer["slack"]) == ("PASS", 0), answer["sentence"]
    assert "it stopped loudly: exit code 1" in check(answer, "fault")["sentence"]
    assert "was started with trigger = 2000 milliseconds" in check(answer, "fault")["sentence"]


def test_more_slots_for_a_job_that_is_behind_change_no_count_and_it_is_told_what_they_were_worth(tmp_path):
    """The start of two JVMs takes all the CPU there is; how late that makes the generator is not asked here."""
    waits = tmp_path / "waits.toml"
    waits.write_text('rate = 1000\nbacklog = "90s"\nduration = "45s"\ndisorder = "mobile"\nlag_budget_ms = 10000\n')
    answer = run(tmp_path, waits, "--master", "local[1]", *IN_STEPS, "--fault", "change-slots(to=2)@batch>=3")

    assert (answer["verdict"], answer["slack"]) == ("PASS", 0), answer["sentence"]
    assert "was started with master = local[2]" in check(answer, "fault")["sentence"]
    told = json.loads((Path(answer["run"]) / "measurement.json").read_text())["catch_up"]
    (found,) = told["new_orders"]
    assert 0 < found["to_do"] <= told["largest"]
    assert found["away"]["value"] > 0
    assert found["before_per_s"]["value"] > 0
