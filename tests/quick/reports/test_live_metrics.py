"""What Prometheus reads of a run that goes on: its own parsers read the text, and each number is that of the state."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import parser as older
from prometheus_client.openmetrics import parser as openmetrics

from reports.live import metrics
from reports.live.state import RunState
from tests.quick.reports.test_live_state import EPOCH_MS, LOAD_PLAN, PLAN, SPEC, phase, second, stored

ROOT = Path(__file__).resolve().parents[3]
NAME = re.compile(r"streamgauge_\w+")
RUNNING = (SPEC, PLAN, LOAD_PLAN, phase("engine", -9), phase("load", 0), second(1, 100, 50, 20, 30.0, 40.0))
USE = {"engine": [12.5, 2_000_000], "kafka": [3.25, 500_000]}
VERDICT: dict[str, Any] = {
    "kind": "verdict.json",
    "content": {
        "outcome": "FAIL",
        "sentence": "lost: 3 events",
        "checks": [
            {"name": "lost", "outcome": "FAIL", "sentence": "3", "word": "lost"},
            {"name": "late", "outcome": "PASS", "sentence": "", "word": ""},
        ],
    },
}


def samples(state: RunState, read: Any = openmetrics) -> dict[tuple[str, ...], float]:
    """(name, the labels that are not of all samples) -> value"""
    found = {}
    for family in read.text_string_to_metric_families(metrics.of_run(state, 'a "run"\\')):
        for sample in family.samples:
            labels = dict(sample.labels)
            assert labels.pop("run") == 'a "run"\\'
            own = [text for key, text in labels.items() if key not in metrics.COMMON]
            found[sample.name.removeprefix("streamgauge_"), *own] = sample.value
    return found


def test_a_run_that_goes_on_has_its_numbers():
    state = stored(
        *RUNNING,
        {**second(2, 200, 150, 120, 35.0), "cells": {"open": 4, "right": 2, "too_many": 1, "wrong": 0}},
        {"kind": "parts", "at_ms": EPOCH_MS + 2000, "parts": USE, "processes": []},
    )

    assert (
        samples(state).items()
        >= {
            ("phase", "engine"): 0,
            ("phase", "load"): 1,
            ("phase_left_seconds",): 58.0,
            ("planned_events",): 9000,
            ("offered_events_total",): 200,
            ("processed_events",): 150,
            ("visible_events",): 120,
            ("backlog_events",): 50,
            ("rate_events_per_second", "offered"): 100.0,
            ("probe_latency_seconds", "0.5"): 0.035,
            ("probe_latency_seconds", "0.99"): 0.04,
            ("probe_latency_seconds_count",): 3,
            ("cells", "open"): 4,
            ("cells", "too many"): 1,
            ("fault", "kill@t>=5s", "planned"): 1,
            ("fault", "kill@t>=5s", "undone"): 0,
            ("cpu_seconds_total", "engine"): 12.5,
            ("memory_bytes", "kafka"): 500_000,
            ("verdict", "PASS"): 0,
            ("verdict", "FAIL"): 0,
            ("ended_early",): 0,
        }.items()
    )


def test_the_verdict_and_each_check_are_metrics():
    found = samples(stored(*RUNNING, VERDICT))

    assert [found["verdict", each] for each in metrics.OUTCOMES] == [0, 1, 0]
    assert [found["check", "lost", each] for each in metrics.OUTCOMES] == [0, 1, 0]
    assert [found["check", "late", each] for each in metrics.OUTCOMES] == [1, 0, 0]
    assert ("phase", "load") in found
    assert not any(value for name, value in found.items() if name[0] == "phase"), "none goes on"


def test_an_engine_without_progress_and_results_without_an_observer_have_no_number():
    names = {name for name, *_ in samples(stored(SPEC, PLAN, LOAD_PLAN, second(1, 100, None, None)))}

    assert "offered_events_total" in names
    assert not names & {"processed_events", "visible_events", "backlog_events", "probe_latency_seconds"}


def test_a_run_that_ended_without_a_verdict_says_so():
    early = {"kind": "ended early", "at_ms": 5, "how": "interrupted", "why": "by Ctrl-C"}

    assert samples(stored(*RUNNING, early))["ended_early",] == 1
    assert samples(stored(*RUNNING, VERDICT, early))["ended_early",] == 0, "it was stopped behind its verdict"


def test_a_run_of_which_nothing_is_known_is_a_whole_text():
    assert samples(RunState()).keys() == {
        ("verdict", "PASS"),
        ("verdict", "FAIL"),
        ("verdict", "UNKNOWN"),
        ("ended_early",),
    }


@pytest.mark.parametrize("entries", [RUNNING, (*RUNNING, VERDICT)], ids=["running", "judged"])
def test_the_older_format_reads_the_same(entries):
    assert samples(stored(*entries), older) == samples(stored(*entries))


def whole() -> set[str]:
    """The names of all samples that there can be, without their labels."""
    numbers = {**second(2, 200, 150, 120, 35.0), "cells": {"open": 4}}
    use = {"kind": "parts", "at_ms": EPOCH_MS + 2000, "parts": USE, "processes": []}
    going, judged = stored(*RUNNING, numbers, use), stored(*RUNNING, VERDICT)
    return {f"streamgauge_{name}" for name, *_ in {**samples(going), **samples(judged)}}


def test_the_dashboard_asks_for_metrics_that_there_are():
    """Grafana's own schema takes its form: UnmarshalJSONStrict and Validate of grafana-foundation-sdk 0.0.22."""
    dashboard = json.loads((ROOT / "examples" / "grafana" / "streamgauge.json").read_text())

    asked = {word for panel in dashboard["panels"] for each in panel["targets"] for word in NAME.findall(each["expr"])}

    assert asked
    assert asked <= whole()
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])


def test_the_page_names_every_metric():
    page = (ROOT / "docs" / "start" / "metrics.md").read_text()
    named = {*re.findall(r"^\| `(streamgauge_\w+)", page, re.MULTILINE)}

    assert named == {name.removesuffix("_count") for name in whole()}


def test_the_text_is_refused_if_it_is_cut_off():
    text = metrics.of_run(stored(*RUNNING), "r")

    assert text.endswith("# EOF\n")
    with pytest.raises(ValueError, match="EOF"):
        list(openmetrics.text_string_to_metric_families(text.removesuffix("# EOF\n")))
