"""The checks of a run.

Each is a pure function of `RunFacts`, in a file of its own. To add one, write a file and add a line here.
"""

from __future__ import annotations

from collections.abc import Callable

from harness.judging.checks import (
    ambiguous,
    backfill,
    duplicated,
    early,
    edited,
    engine,
    evidence,
    fault,
    kinds,
    late,
    log,
    lost,
    masked,
    meanwhile,
    non_monotonic,
    oracle,
    order,
    phantom,
    question,
    readable,
    shifted,
    spoiled,
    stale,
    state,
    stopped,
    torn,
    unaccounted,
    unread,
    vacuity,
    vanishing,
    wrong,
)
from harness.judging.checks.case import RunFacts
from harness.model import CheckResult, Outcome

CHECKS: dict[str, Callable[[RunFacts], CheckResult]] = {
    "edited": edited.check,
    "evidence": evidence.check,
    "vacuity": vacuity.check,
    "fault": fault.check,
    "log": log.check,
    "oracle": oracle.check,
    "engine": engine.check,
    question.NAME: question.check,
    "state": state.check,
    shifted.NAME: shifted.check,
    "lost": lost.check,
    "duplicated": duplicated.check,
    "wrong": wrong.check,
    "order": order.check,
    torn.NAME: torn.check,
    "phantom": phantom.check,
    "readable": readable.check,
    "ambiguous": ambiguous.check,
    "late": late.check,
    "unaccounted": unaccounted.check,
    "masked": masked.check,
    "early": early.check,
    "non-monotonic": non_monotonic.check,
    "stale": stale.check,
    "stopped": stopped.check,
    vanishing.NAME: vanishing.check,
    backfill.NAME: backfill.check,
}


def run_all(case: RunFacts) -> tuple[CheckResult, ...]:
    """Run every check. One that raises is UNKNOWN: a broken checker must never let a run pass."""
    return tuple(_guarded(name, check, case) for name, check in CHECKS.items())


def _guarded(name: str, check: Callable[[RunFacts], CheckResult], case: RunFacts) -> CheckResult:
    try:
        if (unasked := unread.missing(case, name)) is not None:
            return unasked
        if (unasked := kinds.inapplicable(case, name)) is not None:
            return unasked
        result = meanwhile.with_faults(case, unread.unless_found(case, kinds.with_others(case, check(case))))
        return spoiled.unless_explained(case, result)
    except Exception as error:  # noqa: BLE001 - whatever it is, the run must not pass because of it
        sentence = f"the check itself broke: {type(error).__name__}: {error}"
        return CheckResult(name, Outcome.UNKNOWN, sentence, word="broken check", blame="evidence")
