"""An objective that was missed on a machine that did not let the engine run is not the engine's."""

from __future__ import annotations

from dataclasses import replace

from harness.measuring.objective import check
from harness.model import Outcome
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
