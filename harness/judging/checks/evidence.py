"""Evidence: all that a verdict needs could be read, and the files of a run go together.

What is gone, emptied or contradicts another file costs the PASS, and so does what Kafka or Redis did not give out.
"""

from __future__ import annotations

from harness.judging.checks.case import Case
from harness.model import CheckResult, Outcome


def check(case: Case) -> CheckResult:
    if case.not_read:
        return CheckResult("evidence", Outcome.UNKNOWN, case.not_read, word="unread", count=1, blame="evidence")
    if not case.contradictions:
        return CheckResult("evidence", Outcome.PASS, "no file of the run contradicts another one")
    return CheckResult(
        "evidence",
        Outcome.UNKNOWN,
        "; ".join(case.contradictions),
        word="contradicted",
        count=len(case.contradictions),
        blame="evidence",
    )
