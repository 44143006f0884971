"""A state that outgrows what it is given: told on the screen, on the page and in JSON, and its bugs by their names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from harness.cli import app

SHAPE = """
rate = 200
duration = "20s"
watermark = "1m"
window = "2s"
campaigns = 10
probes = 5
disorder = "mobile"
fault = "kill@c3:batch=12; kill@c3:batch=24"
"""


def run(folder: Path, *flags: str):
    scenario = folder / "shape.toml"
    scenario.write_text(SHAPE)
    arguments = ["run", str(scenario), "--engine", "fake", "--sink", "absolute", "--out", str(folder / "runs"), *flags]
    answer = CliRunner().invoke(app.app, arguments, catch_exceptions=False)
    return answer, next((folder / "runs").iterdir())


def test_it_is_killed_at_two_sizes_and_what_that_took_is_told_against_them(tmp_path):
    answer, path = run(tmp_path, "--conf", "misbehave=thrash:1")
    told = " ".join(answer.stdout.split())
    found = json.loads((path / "measurement.json").read_text())["growth"]
    sizes = [each["cells"] for each in found["commits"]]

    assert answer.exit_code == 0, answer.output
    assert "cells; a commit took " in told
    assert " in the end; output again after " in told
    assert sizes == sorted(sizes)
    assert all(each["took_ms"] == each["cells"] for each in found["commits"])
    assert found["steps"][0]["took_ms"] < found["steps"][-1]["took_ms"]
    page = (path / "report.html").read_text()
    assert "A growing state" in page
    assert "first output after</th>" in page


@pytest.mark.parametrize("flags", [("--watermark", "10s"), ("--window", "5s")])
def test_where_windows_close_while_events_come_or_are_few_nobody_speaks_of_growth(tmp_path, flags):
    answer, path = run(tmp_path, *flags)

    assert answer.exit_code == 0, answer.output
    assert json.loads((path / "measurement.json").read_text())["growth"] is None
    assert "A growing state" not in (path / "report.html").read_text()


@pytest.mark.parametrize("bug", ["no-checkpoint", "stale-checkpoint"])
def test_a_state_that_did_not_survive_a_kill_is_lost_and_no_figure_is_told(tmp_path, bug):
    answer, path = run(tmp_path, "--conf", f"misbehave={bug}")

    assert answer.exit_code == 1, answer.output
    assert answer.stdout.startswith("FAIL  lost: ")
    assert json.loads((path / "measurement.json").read_text()) is None
    assert "A growing state" not in (path / "report.html").read_text()


def test_one_that_only_thrashes_is_stuck(tmp_path):
    answer, _ = run(tmp_path, "--fault", "none", "--conf", "misbehave=thrash:1000")

    assert answer.exit_code == 1, answer.output
    assert answer.stdout.startswith("FAIL  stuck: no progress for 30 s (drain_s); ")
