"""The checker is shown to fail: every planted bug is caught under its right name, and every mutated checker is caught
by some planted bug. A mutant that survives means that a part of the checker is not needed, or not tried."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from harness import checks, lateness
from harness.judge import conclude
from harness.ledger import Expectation, Ledger
from harness.model import CheckResult, Outcome
from tests.quality import matrix

MATRIX = [row[0] for row in matrix.rows()]


def wrong_rows() -> list[str]:
    """The rows of the matrix whose verdict is not the expected one."""
    wrong = []
    for name, case, outcome, words in matrix.rows():
        verdict = conclude(case)
        if (verdict.outcome, verdict.words) != (outcome, words):
            wrong.append(f"{name}: expected {outcome} {words}, got {verdict.outcome} {verdict.words}")
    return wrong


def test_every_planted_bug_is_caught_under_its_right_name():
    assert len(MATRIX) >= 25
    assert len(set(MATRIX)) == len(MATRIX)
    assert wrong_rows() == []


ORIGINAL = Expectation.differences


def expected_cells_only(self, seen):
    """The ancestor's mistake: only windows that are expected are looked at."""
    return [d for d in ORIGINAL(self, seen) if d.may]


def no_surplus(self, seen):
    return [d for d in ORIGINAL(self, seen) if d.surplus < 0]


def no_deficit(self, seen):
    return [d for d in ORIGINAL(self, seen) if d.surplus > 0]


def off_by_one(self, seen):
    return [d for d in ORIGINAL(self, seen) if abs(d.surplus) > 1]


def totals_only(self, seen):
    return ORIGINAL(self, seen) if seen.total != self.may.total else []


def distinct_cells_only(self, seen):
    """A set instead of a multiset."""
    return [d for d in ORIGINAL(self, seen) if not (d.may and d.seen)]


def cells_that_were_written_only(self, seen):
    return [d for d in ORIGINAL(self, seen) if d.seen]


def all_but_the_last_window(self, seen):
    last = max((cell.window_ms for cell in self.may), default=0)
    return [d for d in ORIGINAL(self, seen) if d.cell.window_ms != last]


DIFFERENCES = [
    expected_cells_only,
    no_surplus,
    no_deficit,
    off_by_one,
    totals_only,
    distinct_cells_only,
    cells_that_were_written_only,
    all_but_the_last_window,
]


@pytest.mark.parametrize("mutant", DIFFERENCES, ids=lambda f: f.__name__)
def test_a_comparison_that_looks_away_is_caught(mutant, monkeypatch):
    monkeypatch.setattr(Expectation, "differences", mutant)

    assert wrong_rows()


@pytest.mark.parametrize("name", sorted(checks.CHECKS))
def test_a_check_that_always_passes_is_caught(name, monkeypatch):
    monkeypatch.setitem(checks.CHECKS, name, lambda _: CheckResult(name, Outcome.PASS, "all is well"))

    assert wrong_rows()


@pytest.mark.parametrize("name", sorted(checks.CHECKS))
def test_a_check_that_calls_fail_unknown_or_unknown_fail_is_caught(name, monkeypatch):
    original = checks.CHECKS[name]
    other = {Outcome.PASS: Outcome.PASS, Outcome.FAIL: Outcome.UNKNOWN, Outcome.UNKNOWN: Outcome.FAIL}

    def mutant(case):
        result = original(case)
        return replace(result, outcome=other[result.outcome])

    monkeypatch.setitem(checks.CHECKS, name, mutant)

    assert wrong_rows()


def test_a_late_rule_that_drops_nothing_is_caught(monkeypatch):
    monkeypatch.setattr(lateness, "dropped", lambda events, log, window_ms: np.zeros(len(events), dtype=np.bool_))

    assert wrong_rows()


def test_a_severity_that_lets_unknown_hide_a_failure_is_caught(monkeypatch):
    order = [Outcome.PASS, Outcome.FAIL, Outcome.UNKNOWN]
    monkeypatch.setattr(Outcome, "worst", staticmethod(lambda outcomes: max(outcomes, key=order.index)))

    assert wrong_rows()


def test_a_ledger_that_forgets_multiplicity_is_caught(monkeypatch):
    monkeypatch.setattr(Ledger, "count", lambda self, cell: min(1, self._counts.get(cell, 0)))

    assert wrong_rows()
