"""Whole runs as a user makes them: the command, a real Kafka, a real Redis, a real engine, a verdict."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from harness.model import Exit
from harness.services import owners
from harness.services.kafka import topic_exists
from harness.services.redis import connect
from harness.wait import wait_until

WRONG = Path(__file__).parent / "wrong"
YAHOO = Path(__file__).parent / "yahoo"
SHORT = ["--duration", "12s", "--rate", "5000"]

pytestmark = pytest.mark.timeout(400)


def start(folder, *arguments) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "harness.cli", "run", "--out", str(folder), "--json", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def told(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, err = process.communicate(timeout=380)
    assert out, f"no answer, exit {process.returncode}; stderr:\n{err[-3000:]}"
    answer: dict[str, Any] = json.loads(out)
    assert answer["exit"] == process.returncode
    return answer


def run(folder, *arguments) -> dict[str, Any]:
    return told(start(folder, *arguments))


def check(answer, name) -> Any:
    return next(each for each in answer["checks"] if each["name"] == name)


def test_spark_killed_before_its_commit_passes_to_the_single_event(tmp_path):
    answer = run(tmp_path, *SHORT)

    assert (answer["verdict"], answer["slack"]) == ("PASS", 0), answer["sentence"]
    assert "batch 3, which was replayed" in check(answer, "fault")["sentence"]


def test_increments_under_replay_fail_as_duplicated_by_exactly_that_batch(tmp_path):
    answer = run(tmp_path, *SHORT, "--sink", "increment")

    assert (answer["verdict"], answer["words"]) == ("FAIL", ["duplicated"])
    assert "exactly batch 3 once more, which was replayed after kill@c3:batch=3" in answer["sentence"]


@pytest.mark.thorough
def test_increments_without_a_fault_pass(tmp_path):
    assert run(tmp_path, *SHORT, "--sink", "increment", "--fault", "none")["verdict"] == "PASS"


def test_a_fenced_sink_half_written_and_replayed_passes(tmp_path):
    answer = run(tmp_path, *SHORT, "--sink", "fenced", "--fault", "kill@c2:batch=3")

    assert answer["verdict"] == "PASS", answer["sentence"]


def test_late_events_are_dropped_exactly_as_the_checkpoint_says(tmp_path):
    answer = run(tmp_path, "--duration", "30s", "--rate", "3000", "--disorder", "late")

    assert (answer["verdict"], answer["slack"]) == ("PASS", 0), answer["sentence"]
    assert answer["totals"]["late_dropped"] > 0

    # The same run under a bound of zero: the evidence is on disk, so it is judged again and not made again.
    spec = Path(answer["run"]) / "spec.json"
    spec.write_text(json.dumps(json.loads(spec.read_text()) | {"late_dropped_max": 0}))
    refused = _command("recheck", answer["run"])

    assert refused.returncode == Exit.FAIL
    assert refused.stdout.startswith("FAIL  late-dropped")


def test_the_reference_passes_in_a_storm(tmp_path):
    answer = run(tmp_path, *SHORT, "--engine", "reference", "--disorder", "storm")

    assert (answer["verdict"], answer["slack"]) == ("PASS", 0), answer["sentence"]


def test_two_runs_side_by_side_do_not_disturb_each_other(tmp_path):
    both = [start(tmp_path, *SHORT, "--engine", "reference", "--seed", seed) for seed in (1, 2)]
    answers = [told(process) for process in both]

    assert [answer["verdict"] for answer in answers] == ["PASS", "PASS"]
    assert answers[0]["run"] != answers[1]["run"]


@pytest.mark.parametrize(
    ("bug", "word", "name"), [("drops", "lost", "lost"), ("invents", "phantom", "phantom"), ("mute", "stuck", "engine")]
)
def test_a_strangers_engine_with_a_bug_fails_under_its_right_name(tmp_path, bug, word, name):
    answer = run(tmp_path, "--engine", WRONG / bug / "manifest.toml", "--fault", "none", "--duration", "15s")

    assert (answer["verdict"], answer["words"]) == ("FAIL", [word]), answer["sentence"]
    if bug == "drops":
        witness = check(answer, name)["witnesses"][0]
        assert witness["cell"].startswith("campaign ")
        assert "window" in witness["cell"]


@pytest.mark.parametrize(
    ("bug", "words", "told"),
    [
        pytest.param("forgets-an-ad", ["lost"], "campaign ", marks=pytest.mark.thorough),
        pytest.param("clicks", ["duplicated"], "campaign ", marks=pytest.mark.thorough),
        ("hour-off", ["lost", "phantom"], "campaign "),
    ],
)
def test_subtle_bugs_of_strangers_have_the_right_name_and_witness(tmp_path, bug, words, told):
    answer = run(tmp_path, "--engine", WRONG / bug / "manifest.toml", "--fault", "none", *SHORT)

    assert (answer["verdict"], answer["words"]) == ("FAIL", words), answer["sentence"]
    assert check(answer, words[0])["witnesses"][0]["cell"].startswith(told)


def test_a_job_of_the_original_benchmark_runs_unchanged_and_a_second_one_is_found_out(tmp_path):
    calm = ("calm", "--rate", "1000", "--duration", "15s", "--campaigns", "20", "--fault", "none")
    once = run(tmp_path, *calm, "--engine", YAHOO / "once")
    twice = run(tmp_path, *calm, "--engine", YAHOO / "twice")

    assert once["verdict"] == "PASS", once["sentence"]
    assert (twice["verdict"], twice["words"]) == ("FAIL", ["duplicated"]), twice["sentence"]


def test_existing_servers_are_used_and_what_is_foreign_is_left_alone(tmp_path, kafka_address, redis_address):
    place = ["--engine", "reference", "--kafka", kafka_address.bootstrap, "--redis", redis_address.url]

    answer = run(tmp_path, *SHORT, *place)
    again = start(tmp_path, *SHORT, *place)
    _, sentence = again.communicate(timeout=60)
    with connect(redis_address) as client:
        client.flushall()
        client.set("precious", "1")
    foreign = start(tmp_path, *SHORT, *place, "--reset")
    _, refusal = foreign.communicate(timeout=60)

    assert answer["verdict"] == "PASS", answer["sentence"]
    assert not topic_exists(kafka_address, f"streamgauge-{Path(answer['run']).name}")
    assert (again.returncode, foreign.returncode) == (Exit.USAGE, Exit.USAGE)
    assert "--reset" in sentence
    assert "precious" in refusal
    with connect(redis_address) as client:
        assert client.keys() == ["precious"]


def test_a_run_killed_in_the_middle_leaves_nothing_after_the_next_command(tmp_path):
    process = start(tmp_path, "--engine", "reference")
    owner = owners.start_of(process.pid)
    history = wait_until(
        lambda: next(tmp_path.glob("*/history.jsonl"), None), deadline_s=60, what="the run to begin its history"
    )
    wait_until(lambda: '"kind":"epoch"' in history.read_text(), deadline_s=120, what="the load to start")
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()

    listed = _command("ls", tmp_path)
    judged = _command("recheck", history.parent)

    assert "broken off" in listed.stdout
    assert judged.returncode == Exit.UNKNOWN
    assert judged.stdout.startswith("UNKNOWN")
    mark = f"{process.pid}:{owner}"
    left = [p for p in psutil.process_iter() if owners.environment_of(p).get(owners.OWNER_VARIABLE) == mark]
    assert left == []


def _command(*arguments) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "harness.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
