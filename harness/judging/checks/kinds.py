"""The kinds of values that each check can judge.

A check that applies to no value of the question reports that instead of passing.
"""

from __future__ import annotations

from dataclasses import replace

from harness.judging.checks.case import RunFacts, join
from harness.model import CheckResult, Outcome
from workloads.base import Kind

COUNTS = frozenset({Kind.COUNT})
TIMES = COUNTS | {Kind.MATCH}  # how often something came
GROWING = frozenset({Kind.COUNT, Kind.MONOTONE})
SUMS = frozenset({Kind.SUM, Kind.PER_EVENT, Kind.RANKED})
OTHERS = SUMS | {Kind.MONOTONE}
# The kinds of values that a check judges, and why no others.
ASKED = {
    "lost": (GROWING | TIMES, "a difference of it does not show how many events are missing"),
    "duplicated": (TIMES, "an event that counts twice does not raise it"),
    "wrong": (OTHERS, "it is judged by `lost` and `duplicated`"),
    "unaccounted": (COUNTS, "it does not count events"),
    "masked": (COUNTS, "it does not count events"),
    "early": (GROWING, "it may fall"),
    "stale": (GROWING, "it may fall"),
    "non-monotonic": (GROWING, "it may fall"),
}
# These checks need fixed cells with events of their own: a session that begins earlier gets another name.
OF_FIXED_CELLS = frozenset({"early", "stale", "non-monotonic"})


def inapplicable(case: RunFacts, name: str) -> CheckResult | None:
    """Return the result of a check that applies to no value here; None: it applies."""
    if case.oracle.merges and name in OF_FIXED_CELLS:
        return CheckResult(
            name, Outcome.PASS, "does not apply: cells that merge have no events of their own", asked=False
        )
    left_out = _left_out(case, name)
    if len(left_out) < len(case.oracle.values):
        return None
    return CheckResult(name, Outcome.PASS, f"does not apply to {join(left_out)}: {ASKED[name][1]}", asked=False)


def with_others(case: RunFacts, result: CheckResult) -> CheckResult:
    """Add to a result the values that it does not judge."""
    left_out = _left_out(case, result.name)
    if not left_out or result.outcome is Outcome.FAIL:  # keep the sentence that a reader sees first short
        return result
    return replace(result, sentence=f"{result.sentence}; not applied to {join(left_out)}: {ASKED[result.name][1]}")


def _left_out(case: RunFacts, name: str) -> list[str]:
    asked = ASKED[name][0] if name in ASKED else frozenset(Kind)
    return [value.name for value in case.oracle.values if value.kind not in asked]
