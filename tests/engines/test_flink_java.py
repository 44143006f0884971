"""Flink's job in Java on a real Kafka and a real Redis, with older events in files; without them see test_flink.py."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.judging.stored_run import StoredRun
from harness.rundir.store import Store
from tests.engines.test_runs import check, run

ENGINE = ("--engine", "flink-java")
NAMED = ("--conf", "streamgauge.late=named")
LENGTHS = ("--rate", "1000", "--history", "36s", "--backlog", "10s", "--duration", "12s")
HISTORY = ("history", *LENGTHS, "--fault", "none", *NAMED)
SEAMS = Path(__file__).parent / "seams" / "flink.toml"

BOOTSTRAPPED = ("--conf", "streamgauge.history=bootstrapped")

# What plain `test` runs is Spark and the reference.
pytestmark = [pytest.mark.thorough, pytest.mark.timeout(400)]


def lines_of(answer):
    return [json.loads(line) for line in (Path(answer["run"]) / "progress.jsonl").read_text().split("\n") if line]


def seam_of(answer):
    return next(Store.open(Path(answer["run"])).history("history"))["seam"]


def test_files_and_then_kafka_are_one_input(tmp_path, served):
    answer = run(tmp_path, *HISTORY, *ENGINE, *served)

    assert (answer["verdict"], answer["slack"]) == ("PASS", 0), answer["sentence"]
    assert "were moved into files" in check(answer, "log")["sentence"]


def test_killed_among_the_files_or_soon_after_it_goes_on_where_it_was(tmp_path, served):
    answer = run(tmp_path, *HISTORY, *ENGINE, *served, "--fault", "kill@t>=5s")

    assert answer["verdict"] == "PASS", answer["sentence"]
    [restored] = [line["restored"] for line in lines_of(answer) if "restored" in line]
    assert sum(restored.values()) > 0


def test_a_seam_by_time_is_right_too(tmp_path, served):
    answer = run(tmp_path, *HISTORY, *ENGINE, *served, "--seam", "time", "--history", "48s")

    assert (answer["verdict"], answer["slack"]) == ("PASS", 0), answer["sentence"]


@pytest.mark.parametrize("fault", ["none", "kill@t>=5s"])
def test_a_batch_makes_the_state_with_which_it_begins(tmp_path, served, fault):
    answer = run(tmp_path, *HISTORY, *ENGINE, *served, *BOOTSTRAPPED, "--fault", fault)

    assert answer["verdict"] == "PASS", answer["sentence"]
    seam, restored = seam_of(answer), [line["restored"] for line in lines_of(answer) if "restored" in line]
    assert [*restored[0].values()] == seam["ends"]


def test_the_state_after_random_checkpoints_is_what_the_log_says_also_after_a_kill(tmp_path, served):
    dials = ("--rate", "1000", "--duration", "30s", "--watermark", "60s", "--fault", "kill@offset=50%")
    answer = run(tmp_path, "state", *dials, *ENGINE, *served)
    states = StoredRun.open(Path(answer["run"])).states

    assert (answer["verdict"], answer["slack"]) == ("PASS", 0), answer["sentence"]
    assert f" in {len(states)} states match the log" in check(answer, "state")["sentence"]


@pytest.mark.parametrize(("shift", "said"), [(-1, "duplicated: "), (1, "lost: ")])
def test_who_is_wrong_at_the_seam_fails_by_its_right_name(tmp_path, served, shift, said):
    answer = run(tmp_path, *HISTORY, *served, "--engine", SEAMS, "--conf", f"streamgauge.shift={shift}")

    assert answer["verdict"] == "FAIL"
    assert answer["sentence"].startswith(said), answer["sentence"]
    assert "at the seam" in answer["sentence"]
