"""A check that failed by something that a server of others has thrown away blames nobody.

Counts that Redis evicted look as if the engine had lost them. Records that somebody deleted from the log look as if the
engine had counted too much.
"""

from __future__ import annotations

from dataclasses import replace

from harness.judging.checks.case import Case
from harness.model import CheckResult, Outcome

BY_EVICTION = frozenset(
    {"shifted", "lost", "wrong", "order", "unaccounted", "masked", "non-monotonic", "stale", "stopped", "late"}
)
BY_A_CUT_LOG = frozenset(
    {"shifted", "lost", "duplicated", "wrong", "order", "phantom", "unaccounted", "masked", "late", "early"}
)


def unless_explained(case: Case, result: CheckResult) -> CheckResult:
    why = (case.evicted if result.name in BY_EVICTION else "") or (case.cut if result.name in BY_A_CUT_LOG else "")
    if not why or result.outcome is not Outcome.FAIL:
        return result
    sentence = f"{why}, which may be why: {result.sentence}"
    return replace(result, outcome=Outcome.UNKNOWN, sentence=sentence, word="unserved", blame="evidence")
