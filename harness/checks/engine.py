"""Did the engine get through? One that never drains is `stuck`, one that stays down is `crashed`: both FAIL."""

from __future__ import annotations

from harness.checks.case import Case
from harness.model import CheckResult, Outcome, Witness


def check(case: Case) -> CheckResult:
    report = case.engine
    if report.state == "drained":
        return CheckResult("engine", Outcome.PASS, report.detail)
    return CheckResult(
        "engine",
        Outcome.FAIL,
        report.detail,
        word=report.state,
        count=1,
        blame="engine",
        witnesses=tuple(Witness("engine", "goes on", report.state, line) for line in report.last_lines[-5:]),
    )
