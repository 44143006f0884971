"""Whole runs as a user makes them: the command, a real Kafka, a real Redis, a real engine, a verdict."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from harness.install import jvm
from harness.model import Exit
from harness.services import owners
from harness.services.kafka import topic_ids
from harness.services.redis import connect
from harness.util.wait import wait_until
from tests.engines.trial import QUICK_START, SOON_UP, SPARK, WAITS, in_batches_of

HERE = Path(__file__).parent
WRONG, YAHOO, ELSEWHERE = HERE / "wrong", HERE / "yahoo", HERE / "elsewhere"
EXAMPLES = HERE.parents[1] / "examples"
JARS = {
    "flink": "flink-benchmarks-0.1.0.jar",
    "spark": "spark-ss-benchmarks-0.1.0.jar",
    "kafka-streams": "kafka-benchmarks-0.1.0.jar",
}
SHORT = ["--duration", "12s", "--rate", "5000"]
BRIEF = ("--duration", "6s", "--rate", "5000")
CALM = ("calm", "--rate", "1000", "--duration", "6s", "--campaigns", "20", "--fault", "none")

pytestmark = pytest.mark.timeout(400)


def start(folder: Path, *arguments: object, does: str = "run") -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "harness", does, "--out", str(folder), "--json", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def told(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, err = process.communicate(timeout=380)
    assert out, f"no answer, exit {process.returncode}; stderr:\n{err[-3000:]}"
    answer: dict[str, Any] = json.loads(out)
    assert answer["exit"] == process.returncode
    return answer


def run(folder: Path, *arguments: object) -> dict[str, Any]:
    answer = told(start(folder, *arguments))
    assert answer["verdict"], answer["error"]
    return answer


def upgrade(folder: Path, *arguments: object) -> dict[str, Any]:
    return told(start(folder, *arguments, does="upgrade"))


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "harness", *map(str, arguments)]
    return subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)


def check(answer: dict[str, Any], name: str) -> Any:
    return next(each for each in answer["checks"] if each["name"] == name)


@pytest.mark.thorough
def test_increments_under_replay_fail_as_duplicated_by_exactly_that_batch(tmp_path, served):
    answer = run(tmp_path, *SHORT, *SOON_UP, *in_batches_of(10_000), *served, "--sink", "increment")

    assert (answer["verdict"], answer["words"]) == ("FAIL", ["duplicated"])
    assert "exactly batch 3 once more, which was replayed after kill@c3:batch=3" in answer["sentence"]


@pytest.mark.thorough
def test_increments_without_a_fault_pass(tmp_path):
    assert run(tmp_path, *SHORT, *SOON_UP, "--sink", "increment", "--fault", "none")["verdict"] == "PASS"


@SPARK
def test_a_fenced_sink_passes_half_written_and_replayed_and_written_but_not_planned_on(tmp_path, served):
    kills = "kill@c2:batch=2; kill@c4:batch=4"
    load = ("--duration", "30s", "--rate", "1000", *in_batches_of(4000))
    answer = run(tmp_path, *SOON_UP, *load, *served, "--sink", "fenced", "--fault", kills, "--no-archive")

    assert (answer["verdict"], answer["slack"]) == ("PASS", 0), answer["sentence"]
    assert "batch 2, which was replayed" in check(answer, "fault")["sentence"]


@pytest.mark.thorough
def test_late_events_are_dropped_exactly_as_the_checkpoint_says(tmp_path, served):
    """Without a kill, and with a sink of which no state is read; test_states.py has both."""
    late = ("--disorder", "late", "--fault", "none", "--no-archive")
    answer = run(tmp_path, *SOON_UP, "--duration", "30s", "--rate", "2000", *served, *late)

    assert (answer["verdict"], answer["slack"]) == ("PASS", 0), answer["sentence"]
    assert answer["totals"]["late_dropped"] > 0


@pytest.mark.thorough
@WAITS
def test_two_runs_side_by_side_do_not_disturb_each_other(tmp_path):
    both = [start(tmp_path, *BRIEF, "--engine", "reference", "--seed", seed) for seed in (1, 2)]
    answers = [told(process) for process in both]

    assert [answer["verdict"] for answer in answers] == ["PASS", "PASS"]
    assert answers[0]["run"] != answers[1]["run"]


@WAITS
@pytest.mark.parametrize(
    ("bug", "word", "name"),
    [
        ("drops", "lost", "lost"),
        pytest.param("invents", "phantom", "phantom", marks=pytest.mark.thorough),
        pytest.param("mute", "stuck", "engine", marks=pytest.mark.thorough),
    ],
)
def test_a_strangers_engine_with_a_bug_fails_under_its_right_name(tmp_path, served, bug, word, name):
    answer = run(tmp_path, "--engine", WRONG / bug / "manifest.toml", "--fault", "none", "--duration", "12s", *served)

    assert (answer["verdict"], answer["words"]) == ("FAIL", [word]), answer["sentence"]
    if bug == "drops":
        witness = check(answer, name)["witnesses"][0]
        assert witness["cell"].startswith("campaign ")
        assert "window" in witness["cell"]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("bug", "words", "told"),
    [
        ("forgets-an-ad", ["lost"], "campaign "),
        ("clicks", ["duplicated", "phantom"], "campaign "),
        ("hour-off", ["lost", "phantom"], "campaign "),
    ],
)
def test_subtle_bugs_of_strangers_have_the_right_name_and_witness(tmp_path, served, bug, words, told):
    answer = run(tmp_path, "--engine", WRONG / bug / "manifest.toml", "--fault", "none", *BRIEF, *served)

    assert (answer["verdict"], answer["words"][0]) == ("FAIL", words[0]), answer["sentence"]
    # Of the first window only its end may be sent, in which a campaign that is clicked on need not be viewed.
    assert set(answer["words"]) <= set(words), answer["sentence"]
    assert check(answer, words[0])["witnesses"][0]["cell"].startswith(told)


@WAITS
@pytest.mark.parametrize(
    ("job", "verdict", "words"),
    [("once", "PASS", []), pytest.param("twice", "FAIL", ["duplicated"], marks=pytest.mark.thorough)],
)
def test_a_job_of_the_original_benchmark_runs_unchanged_and_a_second_one_is_found_out(tmp_path, job, verdict, words):
    """On servers of the run's own: such a job looks for Redis at one port."""
    answer = run(tmp_path, *CALM, "--engine", YAHOO / job)

    assert (answer["verdict"], answer["words"]) == (verdict, words), answer["sentence"]


@WAITS
@pytest.mark.parametrize(
    "where", ["topic", *(pytest.param(each, marks=pytest.mark.thorough) for each in ("hashes", "strings"))]
)
def test_counts_are_found_wherever_a_manifest_says_they_are(tmp_path, served, where):
    answer = run(tmp_path, *CALM, *served, "--engine", ELSEWHERE / where)

    assert (answer["verdict"], answer["slack"]) == ("PASS", 0), answer["sentence"]
    assert "changes" in check(answer, "early")["sentence"]
    assert answer["measurement"]["latency"]


@pytest.mark.thorough
@WAITS
def test_counts_that_only_a_command_prints_are_judged_without_a_word_on_latency(tmp_path, served):
    answer = run(tmp_path, *CALM, *served, "--engine", ELSEWHERE / "table")

    assert (answer["verdict"], answer["slack"]) == ("PASS", 0), answer["sentence"]
    for name in ("early", "stale", "non-monotonic"):
        assert check(answer, name)["sentence"].startswith("not checked: its results are printed by a command")
    assert answer["measurement"]["latency"] == []
    assert "the results were not polled during the run" in (Path(answer["run"]) / "report.html").read_text()
    assert "latency  not known" in command("recheck", answer["run"]).stdout


@SPARK
@pytest.mark.parametrize(
    ("engine", "verdict", "words"),
    [
        ("spark-job", "FAIL", ["duplicated"]),
        pytest.param("spark-job/fixed", "PASS", [], marks=pytest.mark.thorough),
    ],
)
def test_the_job_of_the_tutorial_counts_a_batch_twice_and_its_fix_does_not(
    tmp_path, monkeypatch, served, engine, verdict, words
):
    monkeypatch.setenv("JDK_JAVA_OPTIONS", QUICK_START)  # a job of a user's knows no --conf
    fault = "checkpoint-delete-commit@offset=50%"
    answer = run(tmp_path, *SHORT, *served, "--engine", EXAMPLES / engine, "--fault", fault)

    assert (answer["verdict"], answer["words"]) == (verdict, words), answer["sentence"]
    if verdict == "FAIL":
        assert "once more" in answer["sentence"]


@pytest.mark.thorough
@WAITS  # for a minute to begin
@pytest.mark.parametrize(
    ("engine", "verdict", "words"),
    [
        ("payments", "FAIL", ["lost", "wrong value"]),
        ("payments/fixed", "PASS", []),
    ],
)
def test_the_shops_job_loses_refunds_and_its_fix_loses_none_though_a_batch_runs_twice(
    tmp_path, monkeypatch, served, engine, verdict, words
):
    """In a folder of a user's, as docs/test/own-question.md has it, with late payments among the others."""
    monkeypatch.setenv("JDK_JAVA_OPTIONS", QUICK_START)
    shutil.copytree(EXAMPLES / "payments", tmp_path / "payments")
    home, fault = tmp_path / "payments", "checkpoint-delete-commit@offset=50%"
    own = ("--workload", home, "--engine", tmp_path / engine, "--disorder", "late")
    answer = run(tmp_path, *SHORT, *served, *own, "--fault", fault)

    assert (answer["verdict"], answer["words"], answer["slack"]) == (verdict, words, 0), answer["sentence"]


@pytest.mark.thorough
def test_the_smallest_job_passes_when_it_is_killed_in_the_middle(tmp_path):
    answer = run(tmp_path, *SHORT, "--engine", EXAMPLES / "own-engine")

    assert answer["verdict"] == "PASS", answer["sentence"]
    assert "kill@t>=6000ms landed" in check(answer, "fault")["sentence"]


@WAITS
@pytest.mark.thorough
@pytest.mark.parametrize("name", [*JARS])
def test_a_template_for_a_job_of_the_original_starts_it_as_its_own_script_does(tmp_path, monkeypatch, name):
    """In the place of the program that its jar needs stands one that takes the last word for its YAML, and counts. As
    some of those jobs do, it begins where its group has committed, and else at the end of the topic."""
    group = "myGroup" if name == "flink" else ""
    for program in ("flink", "spark-submit", "java"):
        stand_in = tmp_path / "bin" / program
        stand_in.parent.mkdir(exist_ok=True)
        job = f'{sys.executable} {YAHOO}/job.py "${{@: -1}}" 1 {group}'
        stand_in.write_text(f'#!/bin/bash\necho "$0 $*" > {tmp_path}/started\nexec {job}\n')
        stand_in.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(jvm.java().resolve().parents[1]))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    engine = shutil.copytree(EXAMPLES / "yahoo" / name, tmp_path / name)
    (engine / JARS[name]).touch()  # a run begins with what was built

    answer = run(tmp_path / "runs", *CALM, "--engine", engine)

    assert answer["verdict"] == "PASS", answer["sentence"]
    assert name.removesuffix("-streams") in (tmp_path / "started").read_text()


@pytest.mark.thorough
@WAITS
def test_an_upgrade_of_a_job_of_the_original_counts_again_what_it_had_counted(tmp_path):
    """It reports no progress, and has no state: the new one begins at the beginning of the topic."""
    jobs = ("--from", YAHOO / "once", "--to", YAHOO / "once")
    answer = upgrade(tmp_path, "calm", "--rate", "1000", "--duration", "10s", "--campaigns", "20", *jobs)

    assert (answer["exit"], answer["upgrade"]["word"]) == (Exit.FAIL, "wrong")
    assert answer["upgrade"]["sentence"].startswith("counts again: the old job left no state that could be copied")
    assert "no state was left to copy" in check(answer, "fault")["sentence"]


@WAITS
def test_existing_servers_are_used_and_what_is_foreign_is_left_alone(tmp_path, kafka_address, redis_address):
    place = ["--engine", "reference", "--kafka", kafka_address.bootstrap, "--redis", redis_address.url]

    answer = run(tmp_path, *BRIEF, *place)
    again = start(tmp_path, *BRIEF, *place)
    _, sentence = again.communicate(timeout=60)
    with connect(redis_address) as client:
        client.flushall()
        client.set("precious", "1")
    foreign = start(tmp_path, *BRIEF, *place, "--reset")
    _, refusal = foreign.communicate(timeout=60)

    assert answer["verdict"] == "PASS", answer["sentence"]
    assert not [each for each in topic_ids(kafka_address) if Path(answer["run"]).name in each]
    assert (again.returncode, foreign.returncode) == (Exit.USAGE, Exit.USAGE)
    assert "--reset" in sentence
    assert "precious" in refusal
    with connect(redis_address) as client:
        assert client.keys() == ["precious"]


@pytest.mark.thorough
def test_a_run_killed_in_the_middle_leaves_nothing_after_the_next_command(tmp_path):
    process = start(tmp_path, "--engine", "reference")
    owner = owners.start_of(process.pid)
    history = wait_until(
        lambda: next(tmp_path.glob("*/history.jsonl"), None), deadline_s=60, what="the run to begin its history"
    )
    wait_until(lambda: '"kind":"epoch"' in history.read_text(), deadline_s=120, what="the load to start")
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()

    listed = command("ls", tmp_path)
    judged = command("recheck", history.parent)

    assert "broken off" in listed.stdout
    assert judged.returncode == Exit.UNKNOWN
    assert judged.stdout.startswith("UNKNOWN")
    mark = f"{process.pid}:{owner}"
    left = [p for p in psutil.process_iter() if owners.environment_of(p).get(owners.OWNER_VARIABLE) == mark]
    assert left == []
