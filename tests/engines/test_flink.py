"""The Flink engines on a real Kafka and a real Redis."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.engines import checkpoints
from harness.rundir.store import Store
from tests.engines.odd import send_odd_records
from tests.engines.test_runs import SHORT, check, run

SINK = "absolute"
REFUSED = "broken UTF-8 in a field that nobody needs"  # Flink's reader of JSON refuses all of such a record
JOBS = pytest.mark.parametrize("name", ["flink", "flink-java"])  # in SQL and in Java
LATE = ["--duration", "40s", "--rate", "3000", "--disorder", "late"]

# What plain `test` runs is Spark and the reference.
pytestmark = [pytest.mark.thorough, pytest.mark.timeout(600)]


@JOBS
def test_it_passes_when_it_is_killed_on_the_way(tmp_path, name):
    answer = run(tmp_path, *SHORT, "--engine", name, "--fault", "kill@offset=50%")

    assert answer["verdict"] == "PASS", answer["sentence"]
    assert "it went on to" in check(answer, "fault")["sentence"]


def test_a_cluster_passes_when_its_task_manager_is_killed_on_the_way(tmp_path):
    answer = run(tmp_path, *SHORT, "--engine", "flink-standalone", "--fault", "kill-executor@offset=50%")

    assert answer["verdict"] == "PASS", answer["sentence"]
    assert "replaced it; it went on" in check(answer, "fault")["sentence"]


def test_a_cluster_passes_when_all_of_it_is_killed_on_the_way(tmp_path):
    answer = run(tmp_path, *SHORT, "--engine", "flink-standalone", "--fault", "kill@offset=50%")

    assert answer["verdict"] == "PASS", answer["sentence"]


@pytest.mark.parametrize(
    ("workers", "fault", "proof", "rescale"),
    [
        (
            "1",
            "add-worker@t>=8s",
            "counts 2 workers as alive, and runs the job with parallelism 2 instead of 1",
            "1 to 2",
        ),
        (
            "2",
            "remove-worker@t>=8s",
            "counts 1 worker as alive, and runs the job with parallelism 1 instead of 2",
            "2 to 1",
        ),
    ],
)
def test_a_cluster_that_grows_or_shrinks_is_rescaled_by_flink_itself(tmp_path, served, workers, fault, proof, rescale):
    arguments = ("--engine", "flink-standalone", "--cluster", workers, "--fault", fault, "--patience", "3")
    answer = run(tmp_path, *SHORT, *served, *arguments)

    assert answer["verdict"] == "PASS", answer["sentence"]
    assert proof in check(answer, "fault")["sentence"]
    assert any(f"parallelism {rescale}" in note for note in notes(answer)), notes(answer)


def test_a_restart_by_flink_itself_is_told_with_its_reason(tmp_path):
    answer = run(tmp_path, *SHORT, "--engine", "flink", "--fault", "redis-kill@t>=8s")

    assert answer["verdict"] == "PASS", answer["sentence"]
    assert any("by itself, from its newest checkpoint (" in note for note in notes(answer)), notes(answer)


def notes(answer) -> list[str]:
    return [note for entry in Store.open(Path(answer["run"])).history("closed") for note in entry["notes"]]


@JOBS
def test_a_job_that_goes_on_with_another_question_counts_by_it_from_the_seam_on(tmp_path, name):
    fault = "change-job(by=ad, means=carry, stop=clean)@offset>=50%"
    answer = run(tmp_path, *SHORT, "--engine", name, "--fault", fault)

    assert answer["verdict"] == "PASS", answer["sentence"]
    assert "as declared (carry)" in answer["sentence"]


@pytest.mark.parametrize("fault", ["none", "kill@offset=50%"])
def test_what_it_drops_as_late_was_late(tmp_path, fault):
    answer = run(tmp_path, *LATE, "--engine", "flink", "--fault", fault)

    assert answer["verdict"] == "PASS", answer["sentence"]
    assert answer["totals"]["counted"] < answer["totals"]["countable"], "nothing was late, so nothing was tested"


@JOBS
def test_asked_to_name_what_it_drops_it_leaves_nothing_to_infer(tmp_path, name):
    answer = run(tmp_path, *LATE, "--engine", name, "--fault", "none", "--conf", "streamgauge.late=named")

    assert (answer["verdict"], answer["slack"]) == ("PASS", 0), answer["sentence"]
    assert check(answer, "late")["count"] > 0
    assert "each named by the engine itself" in check(answer, "late")["sentence"]


def test_with_unaligned_checkpoints_it_tells_no_more_than_it_has_written(tmp_path):
    """Nor soon: what is in flight is not written, so that the kill goes by the clock."""
    unaligned = ["--conf", "execution.checkpointing.unaligned.enabled=true"]
    answer = run(tmp_path, *SHORT, *unaligned, "--engine", "flink", "--fault", "kill@t>=8s")

    assert answer["verdict"] == "PASS", answer["sentence"]
    assert check(answer, "stale")["outcome"] == "PASS"
    told = [*checkpoints.stored(Path(answer["run"]) / checkpoints.FILE)]
    assert told, "it told of no checkpoint"
    assert not any(each.failed for each in told)
    assert max(each.took_ms for each in told) > 0


@pytest.mark.parametrize(
    ("name", "refused", "setting"),
    [
        *((name, REFUSED, ("table.local-time-zone", "UTC")) for name in ("flink", "flink-standalone", "flink-batch")),
        ("flink-java", "", ("execution.checkpointing.interval", "1 s")),
    ],
)
def test_it_counts_what_counts_survives_the_rest_and_ends_in_order(trial, started, name, refused, setting):
    send_odd_records(trial, refused)
    trial.send(5_000)
    engine = started(name, SINK)
    trial.await_drained(engine)

    engine.stop()

    told = json.loads((trial.folder / "engine_settings.json").read_text())
    assert setting in told.items()
    assert trial.results() == trial.expected()
    assert engine.exit_code() == 0
    assert engine.notes() == ()


@JOBS
def test_it_is_exact_after_kills_and_an_end_in_order(trial, started, name):
    engine = started(name, SINK)
    for fault in ("kill@offset=50%", "kill@offset=50%", "stop@offset=50%"):
        trial.send(500)
        trial.await_drained(engine)  # it takes its time to come, and then more would be done than the moment waits for
        report = trial.suffer(engine, SINK, fault, total=2 * (trial.sent + 3_000))
        assert (report.landed, report.healed) == (True, True), report
    trial.await_drained(engine)

    assert trial.results() == trial.expected()
    assert engine.checkpoint is not None
    assert [*engine.checkpoint.glob("savepoints/chk-*/_metadata")], "the job was cancelled without a savepoint"
