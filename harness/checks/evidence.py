"""Evidence: the files of a run go together. What is gone, emptied or contradicts another file costs the PASS."""

from __future__ import annotations

from harness.checks.case import Case
from harness.model import CheckResult, Outcome


def check(case: Case) -> CheckResult:
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
