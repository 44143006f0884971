"""Numbers of one run that stand at two places agree: screen, page, JSON, summary.md, junit.xml and `ls`."""

from __future__ import annotations

import html
import json
import math
import os
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from typing import Any

import pytest

from harness.drivers import one_run
from harness.judging.stored_run import StoredRun
from harness.rundir.store import Store
from harness.runner.screen import NullScreen
from harness.selftest.runs import fake_run
from reports import listing, run_page, screen
from reports.evidence import Evidence
from reports.exports import machine
from reports.page import render
from reports.result import Result

WARM = {"warm_up": "4s", "duration": "16s"}
BURST = {"profile": {"kind": "burst", "factor": 10, "burst_ms": 3000}, "duration": "24s"}
BEHIND = {"backlog": "8s", "duration": "45s"}
TWICE = "kill@t>=4s; redis-pause(for=2s)@t>=8s"
RUNS: dict[str, dict[str, Any]] = {
    "honest": {},
    "disordered": {"disorder": "mobile"},
    "late": {"disorder": "late", "duration": "20s"},
    "storm": {"disorder": "storm", "duration": "20s"},
    "warm": WARM,
    "warm, killed": {**WARM, "fault": "kill@t>=9s"},
    "killed": {"fault": "kill@c3:batch=3", "probes": 60},
    "killed twice": {"fault": TWICE},
    "killed in a burst": {**BURST, "fault": "kill@t>=11s"},
    "killed after the load": {"fault": "kill@offset>=99%"},
    "burst": BURST,
    "bursts": {"profile": {"kind": "burst", "factor": 5, "burst_ms": 2000, "count": 2}, "duration": "24s"},
    "behind": BEHIND,
    "behind, killed": {**BEHIND, "fault": "kill@batch>=4"},
    "from history": {"history": "8s", "backlog": "4s", "duration": "12s"},
    "states": {"states": 3},
    "checksum": {"checksum": True},
    "backfill": {"backfill": "fake", "disorder": "late"},
    "increment": {"sink": "increment", "fault": "kill@c3:batch=3"},
    "fenced": {"sink": "fenced", "fault": "kill@c3:batch=3", "probes": 40},
    "lossy": {"conf": {"misbehave": "drop:100"}},
    "doubling": {"conf": {"misbehave": "double:100"}},
    "slow": {"conf": {"misbehave": "slow:200"}},
    "overflowing": {**BURST, "conf": {"misbehave": "overflow:200"}},
    "dying": {"conf": {"misbehave": "die"}},
    "mute": {"conf": {"misbehave": "mute"}},
    "garbling": {"conf": {"misbehave": "garble:50"}},
    "flushing at stop": {"conf": {"misbehave": "flush-at-stop"}},
    "paused": {"fault": "redis-pause(for=3s)@t>=4s", "probes": 40},
    "ramp": {"profile": "ramp", "duration": "20s"},
}
SOME = ("killed in a burst", "behind, killed", "lossy", "warm, killed", "storm", "behind")

NUMBER = r"(-?[\d,]*\.?\d+(?:e[+-]?\d+)?)"
# One thing of a run, as the places say it. Each pattern has one group for its number.
SAID = {
    "slack": rf"[Ss]lack +(\d[\d,]*)|\"slack\": {NUMBER}|slack=(\d+)",
    "seed": rf"seed[ =]{NUMBER}",
    "records sent": rf"{NUMBER} records (?:were )?sent|\"sent\": {NUMBER}",
    "lag p99.9, ms": rf"lag p99\.9 {NUMBER} ms|p99\.9 of sending lag is {NUMBER} ms|\"p99\.9\": {NUMBER}",
    "offered": rf"{NUMBER}/s (?:were )?offered|offered[ |=]+{NUMBER} events/s|\"offered_per_s\": {NUMBER}",
    "processed": rf"{NUMBER}/s processed|processed[ |=]+{NUMBER} events/s|\"processed_per_s\": {NUMBER}",
    "drained, s": rf"drained {NUMBER} s after the last",
    "dropped as late": rf"{NUMBER} events? dropped as late|\"late_dropped\": {NUMBER}|total\.late_dropped={NUMBER}",
    "cells": rf"counted right in {NUMBER} cells|\"cells\": {NUMBER}|total\.cells={NUMBER}",
    "probes p50, ms": rf"latency +p50 {NUMBER} ms, [^;]*by probes|latency, probes[ |=]+p50 {NUMBER} ms",
    "caught up, s": rf"caught up: {NUMBER} s after its start|\"caught_up\": {{\"value\": {NUMBER}",
}


def places(result: Result) -> dict[str, str]:
    """What each place says, as one line of text."""
    page = render(run_page.page_of(Evidence(Store(result.path))))
    page = re.sub(r"<(style|script|svg).*?</\1>", " ", page, flags=re.DOTALL)
    suite = ET.fromstring((result.path / "junit.xml").read_text())
    told = {
        "screen": "\n".join(screen.lines(result)),
        "page": html.unescape(re.sub(r"<[^>]+>", " ", page)),
        "json": json.dumps(machine.as_object("run", result)),
        "summary": (result.path / "summary.md").read_text(),
        "junit": "\n".join(f"{each.get('name')}={each.get('value')}" for each in suite.iter("property")),
        "ls": " ".join(f"{each.state} {each.sentence}" for each in listing.runs(result.path)),
    }
    return {name: " ".join(text.split()) for name, text in told.items()}


def said(pattern: str, told: dict[str, str]) -> Iterator[tuple[str, float]]:
    for place, text in told.items():
        for groups in re.findall(pattern, text):
            number = next(filter(None, groups if isinstance(groups, tuple) else (groups,)))
            yield place, float(number.replace(",", ""))


def agree(values: set[float]) -> bool:
    """To the digits that are shown, which are three at the least, or a tenth."""
    return all(math.isclose(one, other, rel_tol=0.005, abs_tol=0.051) for one in values for other in values)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The run of a name, with all that is made of it; each once."""
    made: dict[str, tuple[Result, dict[str, str]]] = {}

    def of(name: str) -> tuple[Result, dict[str, str]]:
        if name not in made:
            verdict, store = fake_run(tmp_path_factory.mktemp("run"), **RUNS[name])
            result = one_run.report(StoredRun(store), verdict, NullScreen())
            made[name] = result, places(result)
        return made[name]

    return of


EACH = [*RUNS] if os.environ.get("STREAMGAUGE_TEST_ALL") else SOME


@pytest.mark.parametrize("name", EACH)
def test_what_stands_at_two_places_is_the_same(whole, name):
    _, told = whole(name)
    for what, pattern in SAID.items():
        found = [*said(pattern, told)]
        assert agree({value for _, value in found}), (what, found)


@pytest.mark.parametrize("name", EACH)
def test_the_verdict_is_the_same_at_all_places(whole, name):
    result, told = whole(name)
    verdict = result.verdict
    sentence = " ".join(verdict.sentence.split())
    assert [place for place in ("screen", "page", "summary", "ls") if sentence not in told[place]] == []
    assert json.loads(told["json"])["exit"] == verdict.outcome.exit_code
    heads = {"screen": verdict.outcome.value, "page": "", "ls": verdict.outcome.value, "summary": "## streamgauge: "}
    for place, head in heads.items():
        assert told[place].startswith(head), place
    for check in verdict.checks:
        assert f"| {check.name} | {check.outcome.value} |" in told["summary"]
        assert re.search(rf"{check.outcome.value} +{re.escape(check.name)}\b", told["page"])


@pytest.mark.parametrize("name", [each for each in EACH if "fault" in RUNS[each]])
def test_the_moments_of_a_fault_and_its_backlog_are_the_same_at_all_places(whole, name):
    result, told = whole(name)
    seconds = StoredRun.open(result.path).store.read_table("timeline.parquet").to_pydict()
    for found in result.recovery:
        at = [*said(rf"{re.escape(found.fault)} struck {NUMBER} s into the load", told)]
        at += [*said(rf"{re.escape(found.fault)} at {NUMBER} s\b", told)]
        assert agree({found.struck_s, *(value for _, value in at)}), at
        peak = found.quantities.get("peak_backlog")
        if peak and peak.value is not None and seconds["backlog"]:
            during = [
                backlog
                for second, backlog in zip(seconds["second"], seconds["backlog"], strict=True)
                if second + 1 > found.struck_s and second < found.until_s and backlog is not None
            ]
            assert peak.value == pytest.approx(max(during)), "two peaks of one backlog"


@pytest.mark.parametrize("name", [each for each in EACH if "profile" in RUNS[each]])
def test_a_burst_has_the_backlog_of_the_timeline(whole, name):
    result, _ = whole(name)
    if result.measurement is None or result.measurement.bursts is None:
        return
    backlog = StoredRun.open(result.path).store.read_table("timeline.parquet").column("backlog").to_pylist()
    for stretch in result.measurement.bursts.stretches:
        seconds = backlog[int(stretch.from_s) : math.ceil(stretch.until_s)]
        assert stretch.figures["backlog"].value == pytest.approx(max(seconds)), stretch.name


def test_each_pattern_finds_its_number_at_two_places(whole):
    """Else nothing would be held against anything."""
    found = {
        what: {place for name in SOME for place, _ in said(pattern, whole(name)[1])} for what, pattern in SAID.items()
    }

    assert {what: where for what, where in found.items() if len(where) < 2} == {}
