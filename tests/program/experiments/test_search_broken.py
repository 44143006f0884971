"""A search of an engine that breaks or hides something while it is offered one rate after the other."""

from __future__ import annotations

import json
import re

import pytest

from harness.engines.fake import FakeEngine
from harness.experiments.searching import search
from harness.install import environment
from harness.model import Exit, Progress
from tests.program import pages
from tests.program.calls import invoked

SELDOM_MS = 20_000
FAST = ["search", "--engine", "fake", "--quick", "--window", "4s", "--campaigns", "5", *pages.SLOW_FAKE]


@pytest.fixture
def call(tmp_path, monkeypatch, few_probes):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(environment, "describe", dict)
    monkeypatch.setattr(search, "QUICK", pages.FEW_RATES)
    return lambda *arguments: invoked(*FAST, "--json", *arguments)


def after(monkeypatch, batches, deed):
    """The engine works for so many batches, and then does something else."""
    whole = FakeEngine.crank
    monkeypatch.setattr(
        FakeEngine, "crank", lambda engine: deed(engine) if engine._committed >= batches else whole(engine)
    )


def offered(tmp_path):
    (history,) = tmp_path.glob("experiments/*/runs/*/history.jsonl")
    lines = map(json.loads, history.read_text().splitlines())
    return [line["piece"] for line in lines if line["kind"] == "piece"]


def dies(engine):
    engine._running, engine._exit_code = False, 1


def test_one_that_dies_on_a_plateau_is_offered_nothing_more(call, tmp_path, monkeypatch):
    after(monkeypatch, 30, dies)
    done = call()

    told = json.loads(done.stdout)
    assert (done.exit_code, told["low_per_s"], told["rates"]) == (Exit.FAIL, None, [])
    assert "crashed: the engine ended by itself with exit code 1" in told["sentence"]
    assert re.search(r"; its last progress was at [\d,]+ events/s \(level\)$", told["sentence"])
    assert len(offered(tmp_path)) < 20


def test_one_that_hangs_is_found_to_hang_in_the_next_rest(call, tmp_path, monkeypatch):
    after(monkeypatch, 30, lambda engine: None)
    done = call()

    told, why = json.loads(done.stdout), [piece["why"] for piece in offered(tmp_path)]
    assert (done.exit_code, told["low_per_s"], told["rates"]) == (Exit.FAIL, None, [])
    assert "stuck: no progress" in told["sentence"]
    assert re.search(r"; its last progress was at [\d,]+ events/s \(level\)$", told["sentence"])
    assert why[-2:] == ["rest", "rest"]
    assert "again" not in why


def test_one_that_seldom_tells_of_its_progress_is_steered_by_what_readers_see(call, tmp_path, monkeypatch):
    whole, told = FakeEngine.progress, list[Progress]()

    def seldom(engine):
        newest = whole(engine)
        if newest and (not told or newest.at_ms - told[-1].at_ms >= SELDOM_MS):
            told.append(newest)
        return told[-1] if told else None

    monkeypatch.setattr(FakeEngine, "progress", seldom)
    answer = json.loads(call().stdout)
    rates = [rate["offered_per_s"] for rate in answer["rates"]]

    assert len(told) < 10
    assert answer["lives"][0]["outcome"] == "PASS"
    assert len(rates) >= 6
    assert rates[0] < 1000
    assert 1500 < rates[-1] < 8000


def test_an_objective_that_no_rate_keeps_is_said_to_be_one(call, tmp_path):
    done = call("--objective-p99-ms", "100")

    told = json.loads(done.stdout)
    assert done.exit_code == Exit.UNKNOWN
    assert re.match(r"at no rate were half of the events within 100 ms: at \d+/s, the lowest, p50 is", told["sentence"])
    assert told["rates"][0]["offered_per_s"] >= 10
