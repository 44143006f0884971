"""What a check may say of values that are no counts. It is asked of those for which it means something, and says so
where it is asked of none: a question that can't be put is not answered with yes.
"""

from __future__ import annotations

from dataclasses import replace

from harness.judging.checks.case import Case, join
from harness.model import CheckResult, Outcome
from workloads.base import Kind

COUNTS = frozenset({Kind.COUNT})
GROWING = frozenset({Kind.COUNT, Kind.MONOTONE})
SUMS = frozenset({Kind.SUM, Kind.PER_EVENT})
OTHERS = SUMS | {Kind.MONOTONE}
# Of which values a check speaks, and why of no others.
ASKED = {
    "lost": (GROWING, "no difference of it is a number of what is missing"),
    "duplicated": (COUNTS, "an event that counts twice makes it no larger"),
    "wrong": (OTHERS, "it is judged by `lost` and `duplicated`"),
    "unaccounted": (COUNTS, "it is no number of events"),
    "masked": (COUNTS, "it is no number of events"),
    "early": (GROWING, "it may fall"),
    "stale": (GROWING, "it may fall"),
    "non-monotonic": (GROWING, "it may fall"),
}
# These ask which events are a cell's own, or whether one goes back: a session that begins earlier gets another name.
OF_FIXED_CELLS = frozenset({"early", "stale", "non-monotonic"})


def inapplicable(case: Case, name: str) -> CheckResult | None:
    """The answer of a check that can't be asked of any value here; None: it can."""
    if case.oracle.merges and name in OF_FIXED_CELLS:
        return CheckResult(
            name, Outcome.PASS, "does not apply: cells that merge have no events of their own", asked=False
        )
    left_out = _left_out(case, name)
    if len(left_out) < len(case.oracle.values):
        return None
    return CheckResult(name, Outcome.PASS, f"does not apply to {join(left_out)}: {ASKED[name][1]}", asked=False)


def with_others(case: Case, result: CheckResult) -> CheckResult:
    """What is right, and of which values that says nothing."""
    left_out = _left_out(case, result.name)
    if not left_out or result.outcome is Outcome.FAIL:  # its sentence is what a reader sees first
        return result
    return replace(result, sentence=f"{result.sentence}; not asked of {join(left_out)}: {ASKED[result.name][1]}")


def _left_out(case: Case, name: str) -> list[str]:
    asked = ASKED[name][0] if name in ASKED else frozenset(Kind)
    return [value.name for value in case.oracle.values if value.kind not in asked]
