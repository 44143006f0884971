"""A gate as a CI job calls it: two commits of a repository, three real engines on a real broker, one answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from harness.drivers import gate as drive_gate
from harness.drivers import gate_calibration
from harness.experiments.gating import calibrate, history
from harness.experiments.gating.history import DECIDING
from harness.model import Exit
from reports import calibrated
from reports.exports.gate import EXPORTS

MANIFEST = """
id = "mine"
extends = "reference"
command = ["{python}", "{home}/job.py", "{config}"]
"""
RIGHT = """
import sys
from workloads.ad_impressions.jobs import reference
if __name__ == "__main__":
    reference.main(sys.argv[1])
"""
WRONG = """
import sys
from workloads.ad_impressions.jobs import reference
class Forgets(reference.Counts):
    def __init__(self, ads, *others):
        super().__init__({ad: campaign for ad, campaign in ads.items() if ad != min(ads)}, *others)
reference.Counts = Forgets
if __name__ == "__main__":
    reference.main(sys.argv[1])
"""

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Three commits: one that is right, one that forgets an ad, and one that doesn't build."""
    place = tmp_path / "jobs"
    (place / "engine").mkdir(parents=True)
    (place / "engine" / "manifest.toml").write_text(MANIFEST)
    _git(place, "init", "--quiet")
    for tag, job in (("right", RIGHT), ("wrong", WRONG)):
        (place / "engine" / "job.py").write_text(job)
        _commit(place, tag)
    (place / "engine" / "manifest.toml").write_text(f'{MANIFEST}build = ["sh", "-c", "echo no such jar; exit 3"]\n')
    _commit(place, "unbuilt")
    return place


def _git(place: Path, *words: str) -> str:
    who = ["-c", "user.name=a", "-c", "user.email=a@localhost", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", "-C", str(place), *who, *words], capture_output=True, text=True, check=True)
    return done.stdout


def _commit(place: Path, tag: str) -> None:
    _git(place, "add", "--all")
    _git(place, "commit", "--quiet", "--message", tag)
    _git(place, "tag", tag)


def gate(place: Path, *words: str, budget: str = "1") -> dict[str, Any]:
    own = ["--engine", "engine", "--budget", budget, "--burst", "2000", "--out", str(place.parent / "experiments")]
    line = [sys.executable, "-m", "harness", "gate", *words, *own, "--json"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(line, cwd=place, env=env, capture_output=True, text=True, check=False, timeout=280)
    assert done.stdout, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    assert answer["exit"] == done.returncode
    return answer


def test_a_commit_that_counts_wrong_is_red_and_shows_no_speed(repository):
    (repository / "engine" / "job.py").write_text("what is not committed is nobody's business")
    before = _git(repository, "status", "--porcelain", "--branch") + _git(repository, "worktree", "list")

    kept = repository.parent / "bench" / "gates.jsonl"

    answer = gate(repository, "--base", "right", "--head", "wrong", "--history", str(kept))

    assert (answer["exit"], answer["answer"]) == (Exit.FAIL, "REGRESSED"), answer["sentence"]
    (line,) = history.read(kept).entries
    assert (line.answer, line.engine, line.metrics) == ("REGRESSED", "mine/transaction", ())
    assert (line.base.verdict, line.head.verdict) == ("PASS", "FAIL")
    assert [line.base.commit, line.head.commit] == _git(repository, "rev-parse", "right", "wrong").split()
    assert {*DECIDING} <= line.environment.keys()
    assert answer["sentence"].startswith("the head counts wrong: lost: ")
    assert answer["effects"] == []
    [witness, *_] = answer["sides"]["head"]["witnesses"]
    assert witness["cell"].startswith("campaign ")
    assert witness["expected"] != witness["seen"]
    assert {side: each["outcome"] for side, each in answer["sides"].items()} == {
        "base": "PASS",
        "head": "FAIL",
        "base again": "PASS",
    }
    place = Path(answer["gate"])
    assert {name for name in EXPORTS if (place / name).is_file()} == EXPORTS.keys()
    assert 'failures="1"' in (place / "junit.xml").read_text()
    assert 'engine="mine"' in (place / "metrics.prom").read_text()
    page = (place / "report.html").read_text()
    assert [(place / each["run"] / "report.html").is_file() for each in answer["sides"].values()] == [True] * 3
    assert all(f'href="{each["run"]}/report.html"' in page for each in answer["sides"].values())
    assert before == _git(repository, "status", "--porcelain", "--branch") + _git(repository, "worktree", "list")


@pytest.mark.parametrize(
    ("head", "told"),
    [
        ("unbuilt", "unbuilt does not build: sh -c echo no such jar; exit 3 ended with 3"),
        ("nowhere", "'nowhere' is neither an engine"),
    ],
)
def test_what_can_not_be_gated_is_told_before_anything_starts(repository, head, told):
    answer = gate(repository, "--base", "right", "--head", head)

    assert answer["exit"] == Exit.USAGE
    assert told in answer["error"]


def test_a_manifest_that_is_not_in_a_commit_is_told_and_nothing_is_made(repository):
    (repository / "engine").rename(repository / "moved")
    _commit(repository, "later")

    answer = gate(repository, "--base", "right", "--head", "later")

    assert answer["exit"] == Exit.USAGE
    assert "has no engine: was it moved?" in answer["error"]
    assert not (repository.parent / "experiments").exists()


@pytest.mark.thorough
def test_a_calibration_that_was_broken_off_goes_on_with_the_starts_that_it_has(tmp_path, monkeypatch):
    monkeypatch.setattr(calibrate, "table", partial(calibrate.table, gates=20))
    settings = replace(drive_gate.settings_of(2000, 20), rounds=2)
    asked = gate_calibration.CalibrationRequest("reference", "", {}, budget_s=60, settings=settings, starts=2)
    place = gate_calibration.begin(asked, tmp_path)
    first = gate_calibration._record(place, 1, asked, [])
    gate_calibration._keep(place, asked, [first], {})
    kept = (place.path / "rounds-1.jsonl").read_bytes()
    (place.path / "rounds-2.jsonl").write_bytes(b"what a start left that was broken off")

    found = gate_calibration.drive(gate_calibration.resume(place.path))

    assert (found.starts, found.rounds) == (2, 2)
    assert (place.path / "rounds-1.jsonl").read_bytes() == kept
    arms = {each["side"] for each in map(json.loads, (place.path / "rounds-2.jsonl").read_text().splitlines())}
    assert arms == {arm.name for arm in calibrate.ARMS}
    assert {each.gates for each in found.rates} == {20}
    assert list(calibrated.rows(found))


@pytest.mark.thorough
@pytest.mark.timeout(600)
def test_a_baseline_of_an_earlier_job_takes_the_place_of_a_base(repository):
    file = repository.parent / "baseline.json"

    recorded = gate(repository, "--head", "right", "--save-baseline", str(file), budget="3")
    compared = gate(repository, "--base", str(file), "--head", "right", "--threshold", "100%", budget="3")
    wrong = gate(repository, "--base", str(file), "--head", "wrong")

    assert (recorded["exit"], recorded["answer"]) == (Exit.PASS, "OK"), recorded["sentence"]
    (line,) = history.read(file).entries
    assert (line.base.named, line.head.commit) == ("reference", _git(repository, "rev-parse", "right").strip())
    cost = line.metrics[0]
    assert 0.5 < cost.ratio < 2, "it is the reference by another name"
    assert (compared["exit"], compared["answer"]) == (Exit.PASS, "OK"), compared["sentence"]
    assert compared["effects"][0]["stored_error"] == pytest.approx(cost.error)
    assert (wrong["exit"], wrong["effects"]) == (Exit.FAIL, [])
