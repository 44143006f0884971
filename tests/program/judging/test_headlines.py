"""The headline of a FAIL names the cause, by whole runs of the fake engine with a planted bug each."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from harness.cli import app
from harness.engines import fake
from harness.judging.checks import explained
from harness.model import FaultReport, FaultSpec, Outcome
from harness.selftest import sinks
from harness.selftest.runs import fake_run

SILENT: dict[str, Any] = {"manifest": replace(fake.SILENT, ready_s=80.0, drain_s=80.0)}  # and without evidence
TOLD: dict[str, Any] = {}
LOAD: dict[str, Any] = {"duration": "24s", "rate": 400, "disorder": "mobile"}
KILLED: dict[str, Any] = {**LOAD, "fault": "kill@t>=10s"}


@pytest.mark.parametrize("known", [SILENT, TOLD], ids=["silent", "told"])
@pytest.mark.parametrize(
    ("bug", "dials", "headline"),
    [
        ("short-watermark:100", LOAD, ("late-dropped: ", "the watermark of the job is shorter", "watermark_ms")),
        ("no-checkpoint", KILLED, ("lost: ", "everything before the restart at ", "restarted without its state")),
        ("stale-checkpoint", KILLED, ("lost: ", "before the restart at ", "restarted with an older state")),
    ],
)
def test_the_headline_names_why_events_are_missing(tmp_path, known, bug, dials, headline):
    verdict, _ = fake_run(tmp_path, **known, **dials, conf={"misbehave": bug})

    assert verdict.outcome is Outcome.FAIL
    assert all(part in verdict.sentence for part in headline), verdict.sentence
    assert verdict.sentence.startswith(headline[0])


@pytest.mark.parametrize(
    ("bug", "headline"),
    [("garble:7", "unreadable: "), ("flush-at-stop", "only when stopped: "), ("drop:100", "lost: ")],
)
def test_what_makes_counts_missing_leads_and_not_that_they_are_missing(tmp_path, bug, headline):
    verdict, _ = fake_run(tmp_path, conf={"misbehave": bug})

    assert "lost" in verdict.words
    assert verdict.sentence.startswith(headline), verdict.sentence


@pytest.mark.parametrize("dials", [KILLED, {"fault": "kill@t>=5s"}], ids=["after windows", "in the second window"])
def test_what_was_skipped_after_a_kill_is_said_with_its_moments(tmp_path, dials):
    verdict, _ = fake_run(tmp_path, **SILENT, **dials, conf={"misbehave": "forget"})

    assert verdict.sentence.startswith("lost: "), verdict.sentence
    assert "all that was sent from +" in verdict.sentence
    assert "it was skipped at the restart at" in verdict.sentence


def test_what_a_store_lost_was_not_skipped():
    action, hole = "postgresql-promote", explained._Hole(0, None, 8_900_000, whole=True)
    fault = FaultReport(FaultSpec(f"{action}@t>=6s", action), landed=True, healed=True, proof="", at_ms=12_000)
    case: Any = SimpleNamespace(engine=SimpleNamespace(restarts=0), epoch_ms=6_000)

    assert explained._in_words(case, fault, hole) == (
        "all that was sent from the beginning to +2.9 s is missing: the store lost it at the fault at 00:00:12 UTC "
        "(+6.0 s, postgresql-promote@t>=6s)"
    )


def test_a_pause_is_not_called_a_restart(tmp_path):
    """Of an engine that writes one alone of the windows that close together when it goes on."""
    (dials,) = (dials for name, dials in sinks.closing() if name.endswith("one alone of several"))
    verdict, _ = fake_run(tmp_path, **dials)

    assert verdict.outcome is Outcome.FAIL
    assert "lost" in verdict.words
    assert "restart" not in verdict.sentence
    assert "came back" not in verdict.sentence


def test_a_loss_of_any_events_is_no_short_watermark_and_late_events_are_not_lost_at_a_kill(tmp_path):
    lost, _ = fake_run(tmp_path, **LOAD, sink="fenced", conf={"misbehave": "drop:50"})
    late, _ = fake_run(tmp_path, **SILENT, **KILLED | {"disorder": "late"}, late_dropped_max=0)

    assert lost.sentence.startswith("lost: ")
    assert "watermark" not in lost.sentence
    assert late.words == ("late-dropped",)
    assert "restart" not in late.sentence


def test_screen_json_junit_summary_and_page_say_alike_whether_the_sink_declares_as_much(tmp_path):
    dials = ["--engine", "fake", "--sink", "increment", "--fault", "kill@c3:batch=3", "--duration", "12s"]
    words = "within the declared guarantee at-least-once"

    made = CliRunner().invoke(app.app, ["run", "calm", *dials, "--out", str(tmp_path), "--json"])
    told = json.loads(made.stdout)
    screen = CliRunner().invoke(app.app, ["recheck", told["run"]]).stdout

    assert (told["verdict"], told["words"], told["guarantee"]) == ("FAIL", ["duplicated"], words)
    assert f"  sink     {words} of increment\n" in screen
    run = Path(told["run"])
    assert f'name="guarantee" value="{words}"' in (run / "junit.xml").read_text()
    for name, sink in (("summary.md", "`increment`"), ("report.html", "increment")):
        assert f"The sink: {words} of {sink}." in (run / name).read_text(), name
