"""The short run behind a verdict: whatever goes wrong in it is one sentence, and the verdict stands."""

from __future__ import annotations

import pytest

from harness import plan
from harness.engines.manifest import load
from harness.experiments import one_run, training
from harness.model import HarnessError


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
