"""The short run behind a verdict: whatever goes wrong in it is one sentence, and the verdict stands."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from harness import plan
from harness.engines import fake, removal
from harness.engines.job import OURS
from harness.engines.manifest import load
from harness.experiments import one_run, training
from harness.model import HarnessError, UsageError


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

    training.of_engine(load("spark"))

    assert capsys.readouterr().err.strip() == said


@pytest.mark.parametrize("scenario", ["enrichment", "ad-impressions"])
def test_what_another_question_s_run_lacked_is_made_as_well(monkeypatch, capsys, scenario):
    spec, engine = plan.resolve(*plan.read_scenario(scenario), {"engine": "spark-tws"}, load)
    asked = []
    monkeypatch.setattr(one_run, "prepare", lambda *_: None)
    monkeypatch.setattr(training, "_lacking", lambda spec, *_: asked.append(spec.engine))

    training.after(spec, engine)

    assert (asked, capsys.readouterr().err) == (["spark-tws"], "")


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

    monkeypatch.setattr(training, "_lacking", nothing_is_lacking)

    assert training._make(spec, own, OURS) == []
    assert refused
