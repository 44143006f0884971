"""The results of checks if the results or the Kafka log could not be read at the end, because a service was down.

A check that needs the missing evidence is UNKNOWN. A check that also judges the polls may find an error in them, which
stands; without an error the result is unknown.
"""

from __future__ import annotations

from dataclasses import replace

from harness.judging.checks.case import RunFacts
from harness.model import CheckResult, Outcome

NEEDS_LOG = frozenset(
    {
        "vacuity",
        "log",
        "oracle",
        "question",
        "state",
        "shifted",
        "lost",
        "wrong",
        "order",
        "torn",
        "late",
        "unaccounted",
        "masked",
        "early",
        "stale",
        "backfill",
    }
)
NEEDS_RESULTS = frozenset(
    {
        "question",
        "shifted",
        "lost",
        "duplicated",
        "wrong",
        "order",
        "ambiguous",
        "late",
        "unaccounted",
        "masked",
        "stopped",
        "vanishing",
    }
)
WANTS_RESULTS = frozenset({"phantom", "readable"})  # they also judge the polls


def missing(case: RunFacts, name: str) -> CheckResult | None:
    """Return the result of a check that lacks its evidence; None: it can run."""
    if case.results_unread and name in NEEDS_RESULTS:
        return _not_known(name, "the results were not read")
    if case.log_unread and name in NEEDS_LOG:
        return _not_known(name, "the Kafka log was not read")
    return None


def unless_found(case: RunFacts, result: CheckResult) -> CheckResult:
    """An error that polls did not see may still have been there at the end."""
    if not case.results_unread or result.name not in WANTS_RESULTS or result.outcome is not Outcome.PASS:
        return result
    sentence = f"the polls showed nothing, and the results were not read: {result.sentence}"
    return replace(result, outcome=Outcome.UNKNOWN, sentence=sentence, blame="evidence")


def _not_known(name: str, why: str) -> CheckResult:
    return CheckResult(name, Outcome.UNKNOWN, f"not known: {why}", blame="evidence")
