"""Bursts of the load: judged like all else, and told of on the screen, on the page and in JSON."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from harness.cli import app
from harness.measuring import bursting as bursting_of
from harness.rundir.store import Store
from reports.evidence import Evidence
from reports.sections import bursts as words
from reports.sections.bursts import longest_by_second

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
    answer = CliRunner().invoke(app.app, arguments, catch_exceptions=False)
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


def test_what_an_engine_tells_of_its_checkpoints_is_put_before_in_and_after_the_burst(tmp_path):
    """Each is drawn and told where it was under way; the one of the burst takes 3 s and keeps what was in flight."""
    _, folder = bursting(tmp_path)
    run = Evidence(Store(folder))
    told = [(5.0, 40, 0), (29.0, 3000, 2 << 10), (40.0, 60, 0)]
    lines = [
        {"at": run.epoch_ms + int(s * 1000), "took_ms": took_ms, "bytes": 9, "in_flight_bytes": kept}
        for s, took_ms, kept in told
    ]
    (folder / "checkpoints.jsonl").write_text("\n".join(map(json.dumps, lines)))
    seen = bursting_of.checkpointing(run)
    found = bursting_of.of_run(run, None)

    assert found
    assert seen
    took_ms = [each.figures["checkpointing_ms"].value for each in found.stretches]
    kept_kib = [each.figures["in_flight_kib"].value for each in found.stretches]
    assert took_ms == pytest.approx([40, 3000, 60])
    assert kept_kib == [0, 2, 0]
    assert "checkpoint took 40 ms, 3,000 ms, 60 ms; in flight 0 KiB, 2 KiB, 0 KiB" in words.in_words(found)
    by_second = longest_by_second(seen, 60)
    assert [s for s in range(60) if np.isfinite(by_second[s])] == [5, 29, 30, 31, 40]


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
