"""Bursts of the load: judged like all else, and told of on the screen, on the page and in JSON."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from harness import cli

SHAPE = """
rate = 200
duration = "60s"
disorder = "none"
fault = "none"
campaigns = 10
window = "5s"

[profile]
kind = "burst"
factor = 10
burst_ms = 4000
"""


def bursting(folder: Path, *flags: str, shape: str = SHAPE):
    scenario = folder / "shape.toml"
    scenario.write_text(shape)
    arguments = ["run", str(scenario), "--engine", "fake", "--out", str(folder / "runs"), *flags]
    answer = CliRunner().invoke(cli.app, arguments, catch_exceptions=False)
    return answer, next((folder / "runs").iterdir())


def test_one_that_falls_behind_in_a_burst_says_by_how_much_and_when_it_was_as_before(tmp_path):
    """It does 1,000 of 2,000 events a second for four seconds, and then works off what is left at 800 a second."""
    answer, run = bursting(tmp_path, "--conf", "misbehave=slow:1000")
    told = " ".join(answer.stdout.split())
    found = json.loads((run / "measurement.json").read_text())["bursts"]
    (burst,) = found["bursts"]

    assert answer.exit_code == 0, answer.output
    assert "10 times the rate for 4 s at 28 s: " in told
    assert "event-s above the band of " in told
    assert "before, in and after: latency " in told
    assert (burst["from_s"], burst["until_s"], burst["times"]) == (28, 32, 10)
    assert 3 <= burst["back"]["value"] <= 12, burst["back"]
    assert burst["area"]["value"] > 1000
    assert [each["name"] for each in found["stretches"]] == ["before", "burst", "after"]
    backlog = [each["figures"]["backlog"]["value"] for each in found["stretches"]]
    assert backlog[0] < 1000 < backlog[1], backlog
    page = (run / "report.html").read_text()
    assert "area above the band</th>" in page
    assert "with bursts shaded" in page


def test_where_a_burst_makes_counts_wrong_no_figure_is_told(tmp_path):
    wrong, run = bursting(tmp_path, "--conf", "misbehave=overflow:200", shape=f"{SHAPE}count = 2\n")

    assert wrong.exit_code == 1, wrong.stdout
    assert wrong.stdout.startswith("FAIL  lost: ")
    assert "event-s" not in wrong.stdout
    assert "area above the band" not in (run / "report.html").read_text()
    assert json.loads((run / "measurement.json").read_text()) is None


def test_a_kill_in_the_burst_is_judged_like_any_other(tmp_path):
    answer, run = bursting(tmp_path, "--fault", "kill@c3:t>=29s")
    history = [json.loads(line) for line in (run / "history.jsonl").read_text().splitlines()]
    (report,) = [each for each in history if each["kind"] == "fault"]
    told = " ".join(answer.stdout.split())

    assert answer.exit_code == 0, answer.output
    assert "PASS" in told
    assert report["report"]["landed"]
    assert "times the rate" in told


def test_too_short_a_time_before_it_is_said_and_not_guessed_from(tmp_path):
    answer, _ = bursting(tmp_path, "--duration", "20s")
    told = " ".join(answer.stdout.split())

    assert "time back to the band not known (8 s of steady load before the first burst are too few: 10 s" in told
