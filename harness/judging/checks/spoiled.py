"""Turn a FAIL to UNKNOWN if an external server deleted data that may explain it.

Counts that Redis evicted look like a loss by the engine. Records that another client deleted from the log look like a
surplus of the engine.
"""

from __future__ import annotations

from dataclasses import replace

from harness.judging.checks.case import RunFacts
from harness.model import CheckResult, Outcome

BY_EVICTION = frozenset(
    {"shifted", "lost", "wrong", "order", "unaccounted", "masked", "non-monotonic", "stale", "stopped", "late"}
)
BY_A_CUT_LOG = frozenset(
    {"shifted", "lost", "duplicated", "wrong", "order", "phantom", "unaccounted", "masked", "late", "early"}
)


def unless_explained(case: RunFacts, result: CheckResult) -> CheckResult:
    why = (case.evicted if result.name in BY_EVICTION else "") or (case.cut if result.name in BY_A_CUT_LOG else "")
    if not why or result.outcome is not Outcome.FAIL:
        return result
    sentence = f"{why}, which may be the cause: {result.sentence}"
    return replace(result, outcome=Outcome.UNKNOWN, sentence=sentence, word="unserved", blame="evidence")
