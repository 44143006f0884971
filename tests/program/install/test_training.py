"""The short run behind a verdict: whatever goes wrong in it is one sentence, and the verdict stands."""

from __future__ import annotations

import os
import shutil
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from harness.config import plan
from harness.drivers import class_archives, one_run
from harness.engines import fake, removal
from harness.engines.job import OURS
from harness.engines.manifest import load
from harness.model import HarnessError, Stopped, UsageError

PAYMENTS = Path(__file__).resolve().parents[3] / "examples" / "payments"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (HarnessError("/cache can't be written."), "The next start is no faster. /cache can't be written."),
        (ZeroDivisionError("by zero"), "The next start is no faster: ZeroDivisionError: by zero."),
    ],
)
def test_what_goes_wrong_is_said_in_a_sentence(monkeypatch, capsys, error, said):
    def broken(*_):
        raise error

    monkeypatch.setattr(plan, "read_scenario", broken)

    class_archives.of_engine(load("spark"))

    assert capsys.readouterr().err.strip() == said


@pytest.mark.parametrize("scenario", ["enrichment", "ad-impressions"])
def test_what_another_question_s_run_lacked_is_made_as_well(monkeypatch, capsys, scenario):
    spec, engine = plan.resolve(*plan.read_scenario(scenario), {"engine": "spark-tws"}, load)
    asked = []
    monkeypatch.setattr(one_run, "prepare", lambda *_: None)
    monkeypatch.setattr(class_archives, "_lacking", lambda spec, *_: asked.append(spec.engine))

    class_archives.after(spec, engine)

    assert (asked, capsys.readouterr().err) == (["spark-tws"], "")


def test_a_users_own_engine_is_found_by_its_path_with_its_question_and_its_sink(monkeypatch, capsys, tmp_path):
    own = shutil.copytree(PAYMENTS, tmp_path / "own")
    (own / "manifest.toml").write_text(f"archive = true\n{(own / 'manifest.toml').read_text()}")
    flags = {"engine": str(own), "workload": str(own)}
    spec, engine = plan.resolve(*plan.read_scenario("late"), flags, load)
    asked = []
    monkeypatch.setattr(one_run, "prepare", lambda *_: None)
    monkeypatch.setattr(
        class_archives, "_lacking", lambda spec, *_: asked.append((spec.engine, spec.workload, spec.sink))
    )

    class_archives.after(spec, engine)

    assert (asked, capsys.readouterr().err) == ([("minutes", "payments", "totals")], "")


def stopped(*_):
    raise Stopped(signal.SIGINT)


def test_ctrl_c_skips_the_archives_after_a_run(monkeypatch, capsys):
    spec, engine = plan.resolve(*plan.read_scenario("calm"), {"engine": "spark"}, load)
    monkeypatch.setattr(class_archives, "_lacking", stopped)

    class_archives.after(spec, engine)

    assert "Skipped by" in capsys.readouterr().err


def test_ctrl_c_before_an_experiment_ends_it(monkeypatch):
    spec, engine = plan.resolve(*plan.read_scenario("calm"), {"engine": "spark"}, load)
    monkeypatch.setattr(class_archives, "_lacking", stopped)

    with pytest.raises(Stopped):
        class_archives.before(spec, engine)


def test_only_archives_behind_a_verdict_are_made_at_low_priority(monkeypatch, capsys):
    spec, engine = plan.resolve(*plan.read_scenario("calm"), {"engine": "spark"}, load)
    priorities, skippable = [], []
    monkeypatch.setattr(class_archives, "_lacking", lambda *_: ["one"])

    def make(*given):
        priorities.append(given[-1])
        return []

    monkeypatch.setattr(class_archives, "_make", make)

    for train in (class_archives.before, class_archives.after):
        train(spec, engine)
        skippable.append("Ctrl-C skips" in capsys.readouterr().err)

    assert priorities == [0, 10]
    assert skippable == [False, True]


def test_nobody_removes_the_engine_that_it_runs(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(os, "nice", lambda _: 0)
    own = replace(fake.MANIFEST, id="own", packages="own")
    spec, _ = plan.resolve(*plan.read_scenario("calm"), {"engine": "fake"}, load)
    refused = []

    def nothing_is_lacking(*_):
        with pytest.raises(UsageError, match="What was installed for own is in use") as error:
            removal.remove(own, print)
        refused.append(error)
        return []

    monkeypatch.setattr(class_archives, "_lacking", nothing_is_lacking)

    assert class_archives._make(spec, own, OURS, class_archives.LOW_PRIORITY) == []
    assert refused
