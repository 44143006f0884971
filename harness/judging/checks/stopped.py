"""Stopped: compare the results after the engine was stopped and had ended with the first reading.

A cell that was right before and is wrong now was changed by the stop. A cell that is right only now was held back, and
would be lost if the engine were killed.
"""

from __future__ import annotations

from harness.evidence.observed import Observed
from harness.judging.checks.case import EXAMPLES, RunFacts, failed
from harness.model import CheckResult, Outcome, Witness
from harness.util.texts import many

ONLY_WHEN_STOPPED = "only when stopped"


def check(case: RunFacts) -> CheckResult:
    after = case.after_stop
    if after is None:
        return _passed("not checked: the results of this run were read only once, before its engine was stopped")
    if after.error:
        sentence = f"after the engine was stopped the results could not be read again: {after.error}"
        if case.blind:  # results may come from a program that queries the running engine
            return _passed(f"not checked: {sentence}")
        return CheckResult("stopped", Outcome.UNKNOWN, sentence, "not read again", blame="evidence")
    if after.observed is None:
        return _passed("not judged: before it could be stopped, the engine had ended or its results were unreadable")
    return _compared(case, after.observed)


def _compared(case: RunFacts, after: Observed) -> CheckResult:
    spoiled = [*_cells(case, _spoiled(case, after), after), *_strays(case, after)]
    late = _cells(case, _right_only_now(case, after), after)
    if not spoiled and not late:
        return _passed("stopping the engine made no right cell wrong, and no wrong cell right")
    found = (
        [f"{many(len(spoiled), 'result was', 'results were')} right, and stopping the engine made them wrong"]
        if spoiled
        else []
    )
    found += (
        [f"{many(len(late), 'result was', 'results were')} wrong, and only stopping the engine made them right"]
        if late
        else []
    )
    count, witnesses = len(spoiled) + len(late), (spoiled or late)[:EXAMPLES]
    sentence = "; ".join(found)
    return failed("stopped", sentence, count, witnesses, "changed when stopped" if spoiled else ONLY_WHEN_STOPPED)


def _spoiled(case: RunFacts, after: Observed) -> list[int]:
    """Return cells that the stop made wrong.

    Either the count is wrong, or the sums of ids changed under an equal count, or the cell has a second value or an
    unexpected 0.
    """
    before = case.observed
    wrong = _wrong(case, before)
    by_count = [cell for cell in _wrong(case, after) if cell not in wrong]
    by_sums = [
        cell
        for cell, sums in before.sums.items()
        if before.counts.count(cell) == after.counts.count(cell) and after.sums.get(cell) != sums
    ]
    by_value = [cell for cell in _odd(case, after) if cell not in _odd(case, before)]
    return [*by_count, *(cell for cell in (*by_sums, *by_value) if cell not in wrong)]


def _odd(case: RunFacts, seen: Observed) -> set[int]:
    """Return cells that `ambiguous` and `phantom` report for reasons other than their counts."""
    return {*(each.cell for each in seen.ambiguities), *(cell for cell in seen.zeros if cell not in case.log_ledger)}


def _right_only_now(case: RunFacts, after: Observed) -> list[int]:
    """For an engine that was still working it is unknown what it would have written without the stop."""
    if case.engine.state not in ("drained", "stuck"):
        return []
    wrong = _wrong(case, after)
    return [cell for cell in _wrong(case, case.observed) if cell not in wrong]


def _wrong(case: RunFacts, seen: Observed) -> dict[int, None]:
    return dict.fromkeys(difference.cell for difference in case.allowed.differences(seen.counts))


def _cells(case: RunFacts, cells: list[int], after: Observed) -> list[Witness]:
    return [
        Witness(
            case.cell_name(cell),
            expected=str(case.expectation.may.count(cell)),
            seen=str(after.counts.count(cell)),
            detail=f"{case.observed.counts.count(cell)} before the stop",
        )
        for cell in cells
    ]


def _strays(case: RunFacts, after: Observed) -> list[Witness]:
    """Report new entries that are no counts of known keys.

    Keys that are no results in any form are ignored, as before the stop.
    """
    known = {stray.where for stray in case.observed.strays}
    return [
        Witness(stray.where, "nothing", stray.value, "not there before the stop")
        for stray in after.strays
        if stray.where not in known and stray.kind != "key"
    ]


def _passed(sentence: str) -> CheckResult:
    return CheckResult("stopped", Outcome.PASS, sentence)
