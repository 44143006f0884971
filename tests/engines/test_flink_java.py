"""Flink's job in Java on a real Kafka and a real Redis: killed, ended in order, and with older events in files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.judging.stored_run import StoredRun
from harness.rundir.store import Store
from tests.engines.odd import send_odd_records
from tests.engines.test_runs import SHORT, check, run

NAME, SINK = "flink-java", "absolute"
ENGINE = ("--engine", NAME)
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


def test_it_passes_when_it_is_killed_on_the_way(tmp_path):
    answer = run(tmp_path, *SHORT, *ENGINE, "--fault", "kill@offset=50%")

    assert answer["verdict"] == "PASS", answer["sentence"]
    assert "it went on to" in check(answer, "fault")["sentence"]


def test_a_job_that_goes_on_with_another_question_counts_by_it_from_the_seam_on(tmp_path):
    fault = "change-job(by=ad, means=carry, stop=clean)@offset>=50%"
    answer = run(tmp_path, *SHORT, *ENGINE, "--fault", fault)

    assert answer["verdict"] == "PASS", answer["sentence"]
    assert "as declared (carry)" in answer["sentence"]


def test_asked_to_name_what_it_drops_it_leaves_nothing_to_infer(tmp_path):
    late = ["--duration", "40s", "--rate", "3000", "--disorder", "late", "--fault", "none"]
    answer = run(tmp_path, *late, *ENGINE, *NAMED)

    assert (answer["verdict"], answer["slack"]) == ("PASS", 0), answer["sentence"]
    assert check(answer, "late")["count"] > 0
    assert "each named by the engine itself" in check(answer, "late")["sentence"]


def test_it_counts_what_counts_survives_the_rest_and_ends_in_order(trial, started):
    send_odd_records(trial)
    trial.send(5_000)
    engine = started(NAME, SINK)
    trial.await_drained(engine)

    engine.stop()

    told = json.loads((trial.folder / "engine_settings.json").read_text())
    assert told["execution.checkpointing.interval"] == "1 s"
    assert trial.results() == trial.expected()
    assert engine.exit_code() == 0
    assert engine.notes() == ()


def test_it_is_exact_after_kills_and_an_end_in_order(trial, started):
    engine = started(NAME, SINK)
    for fault in ("kill@offset=50%", "kill@offset=50%", "stop@offset=50%"):
        trial.send(500)
        trial.await_drained(engine)
        report = trial.suffer(engine, SINK, fault, total=2 * (trial.sent + 3_000))
        assert (report.landed, report.healed) == (True, True), report
    trial.await_drained(engine)

    assert trial.results() == trial.expected()
    assert engine.checkpoint is not None
    assert [*engine.checkpoint.glob("savepoints/chk-*/_metadata")], "the job was cancelled without a savepoint"


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
