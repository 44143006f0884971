"""The whole action with nothing made up: a change of a PySpark job that counts wrong makes a pull request red."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness.model import Exit
from tests.program import actions

ROOT = Path(__file__).resolve().parents[2]
JOBS = ROOT / "examples" / "gate"

pytestmark = [pytest.mark.timeout(900), pytest.mark.thorough]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """The job of examples/gate, and a change of it that somebody thought harmless."""
    place = tmp_path / "shop"
    job = place / "jobs" / "ad-counts"
    job.mkdir(parents=True)
    _git(place, "init", "--quiet")
    shutil.copy(JOBS / "manifest.toml", job)
    for name, branch in (("base", "main"), ("wrong", "purchases-are-views")):
        _git(place, "checkout", "--quiet", "-b", branch)
        shutil.copy(JOBS / f"{name}.py", job / "base.py")
        _git(place, "add", "--all")
        _git(place, "commit", "--quiet", "--message", name)
    return place


def _git(place: Path, *words: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@localhost", "-c", "commit.gpgsign=false")
    subprocess.run(["git", "-C", str(place), *who, *words], capture_output=True, check=True)


def test_a_job_that_counts_wrong_makes_a_pull_request_red(repository, tmp_path):
    action, temporary = tmp_path / "action", tmp_path / "temp"
    action.mkdir()
    temporary.mkdir()
    for name in ("requirements", "harness"):
        (action / name).symlink_to(ROOT / name)
    launcher = action / "streamgauge"
    launcher.write_text(f'#!/bin/sh\nexec {sys.executable} -m harness "$@"\n')
    launcher.chmod(0o755)
    job = actions.Job(temporary, repository, action, {**os.environ, "PYTHONPATH": str(ROOT)})

    inputs = {"base": "main", "head": "HEAD", "engine": "jobs/ad-counts", "budget": "1"}
    job.run(actions.read(ROOT / "action.yml"), inputs)

    assert job.failed == Exit.FAIL, job.log
    assert "Java: ok" in job.log, "the doctor has to come first"
    assert "\n::error title=streamgauge gate%3A REGRESSED::the head counts wrong: " in job.log
    assert job.summary.startswith("## streamgauge gate: REGRESSED\n")
    assert "| head | `HEAD` | FAIL |" in job.summary
    assert "detectable" not in job.summary, "a speed of wrong counts"
    folder = Path(job.outputs["steps.run.outputs.folder"])
    assert list((folder / "runs").glob("*-head-1/expected.parquet")), "the evidence is kept"
