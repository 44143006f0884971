"""Shifted: the results are right, but under the name of another window, all shifted by the same step.

Then no event is lost, duplicated or invented, and a search for one would be futile: the job names its windows by
another rule, usually by their end. Other checks report each wrong cell; this check leads the verdict.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from harness.evidence.ledger import Difference, Expectation, Ledger
from harness.judging.checks.case import Ints, RunFacts, failed
from harness.model import CheckResult, Outcome
from harness.util.texts import many

NAME = "shifted"
UNLIKE = 0.1  # the share of the wrong cells that a shift may leave unexplained
TRIED = 4  # number of shifts
FURTHEST_MS = 366 * 86_400_000


def check(case: RunFacts) -> CheckResult:
    wrong = case.differences
    if not wrong or not case.observed.counts:
        return CheckResult(NAME, Outcome.PASS, "no cell has the value of another window")
    for by_ms in _candidates(case):
        left = _moved(case, by_ms).differences(case.observed.counts)
        if len(left) <= UNLIKE * len(wrong):
            return _named(case, by_ms, wrong, left)
    return CheckResult(NAME, Outcome.PASS, "no other window name explains the wrong cells")


def _candidates(case: RunFacts) -> list[int]:
    """Return the most frequent shifts of a key's first or last window between expectation and results."""
    expected, seen = (_spans(case, ledger.cells) for ledger in (case.allowed.may, case.observed.counts))
    shifts = Counter(
        there - here
        for key in expected.keys() & seen.keys()
        for here, there in zip(expected[key], seen[key], strict=True)
    )
    return [by_ms for by_ms, _ in shifts.most_common(TRIED) if 0 < abs(by_ms) <= FURTHEST_MS]


def _spans(case: RunFacts, cells: Ints) -> dict[int, tuple[int, int]]:
    """Return the first and the last window of each key."""
    keys, begins_ms = case.oracle.codes.keys(cells), case.oracle.begins_ms(cells)
    order = np.lexsort((begins_ms, keys))
    found, first = np.unique(keys[order], return_index=True)
    sorted_ms = begins_ms[order]
    last = np.append(first[1:], len(order)) - 1
    return dict(zip(found.tolist(), zip(sorted_ms[first].tolist(), sorted_ms[last].tolist(), strict=True), strict=True))


def _moved(case: RunFacts, by_ms: int) -> Expectation:
    """Return the expectation with each window renamed by this difference."""
    codes = case.oracle.codes

    def moved(ledger: Ledger) -> Ledger:
        cells = ledger.cells
        there = codes.of(codes.keys(cells), codes.fields(cells) + by_ms)
        return Ledger(zip(there.tolist(), ledger.values(), strict=True))

    return Expectation(moved(case.allowed.must), moved(case.allowed.may))


def _named(case: RunFacts, by_ms: int, wrong: list[Difference], left: list[Difference]) -> CheckResult:
    way = "earlier" if by_ms > 0 else "later"
    by = f"{abs(by_ms) / 1000:g} s"
    step_ms = _step_ms(case)
    steps = f"{_steps(abs(by_ms) // step_ms)} {way} ({by})" if abs(by_ms) % step_ms == 0 else f"{by} {way}"
    end = ", and a window is as long: the job names windows by their ends" if by_ms == case.length_ms else ""
    rest = f"all but {len(left):,} of " if left else "all "
    explains = f"this explains {rest}{many(len(wrong), 'wrong cell')}"
    sentence = f"the results are those of the window {steps}{end}; {explains}"
    return failed(NAME, sentence, len(wrong), case.witnesses(wrong))


def _steps(number: int) -> str:
    return "one step" if number == 1 else f"{number:,} steps"


def _step_ms(case: RunFacts) -> int:
    """Return the time from one window to the next."""
    begins_ms = np.unique(case.oracle.begins_ms(case.allowed.may.cells))
    return int(np.diff(begins_ms).min()) if len(begins_ms) > 1 else case.spec.window_ms
