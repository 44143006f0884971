"""An objective that was missed on a machine that did not let the engine run is not the engine's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.measuring.objective import check, with_objective
from harness.model import Outcome, Verdict
from tests.program.pages import MEASURED


def test_a_missed_objective_is_excused_by_starvation_and_a_kept_one_needs_no_excuse():
    probes = MEASURED.latency[0]
    assert probes.way == "probes"
    slow = replace(MEASURED, latency=(replace(probes, corrected=replace(probes.corrected, p99=900.0)),))

    assert check(slow, 100.0).outcome is Outcome.FAIL
    excused = check(slow, 100.0, "it got 3 CPU-s in 30 s")
    assert (excused.outcome, excused.word) == (Outcome.UNKNOWN, "starved")
    assert "it got 3 CPU-s in 30 s" in excused.sentence
    assert check(slow, 1000.0, "it got 3 CPU-s in 30 s").outcome is Outcome.PASS


@pytest.mark.parametrize(
    ("judged", "objective_ms", "outcome"),
    [
        (Outcome.PASS, 1000.0, Outcome.PASS),
        (Outcome.PASS, 100.0, Outcome.FAIL),
        (Outcome.UNKNOWN, 100.0, Outcome.FAIL),
        (Outcome.FAIL, 1000.0, Outcome.FAIL),
        (Outcome.UNKNOWN, 1000.0, Outcome.UNKNOWN),
        (Outcome.PASS, None, Outcome.PASS),
    ],
)
def test_an_objective_may_worsen_a_verdict_and_betters_none(judged, objective_ms, outcome):
    probes = MEASURED.latency[0]
    measured = replace(MEASURED, latency=(replace(probes, corrected=replace(probes.corrected, p99=900.0)),))
    before = Verdict(judged, "as before", 0, (), {})
    after = with_objective(before, measured, objective_ms)

    assert after.outcome is outcome
    assert (after.sentence == "as before") is (outcome is judged)
    assert [each.name for each in after.checks] == ([] if objective_ms is None else ["objective"])
