"""Wrong: the value of a cell that is no count, or of one event, is another one than the log explains.

By how much it is wrong says nothing of how many events are missing or too many: a refund that is lost makes a sum too
large. The events of the cell are named.
"""

from __future__ import annotations

from harness.judging.checks.case import Case
from harness.judging.checks.kinds import OTHERS
from harness.model import CheckResult, Outcome


def check(case: Case) -> CheckResult:
    wrong = [d for d in case.differences_of(OTHERS) if not case.is_empty(d.cell)]
    if not wrong:
        return CheckResult("wrong", Outcome.PASS, "no cell holds another value")
    missing = sum(d.seen == 0 for d in wrong)
    beside = f", {missing:,} of them hold none" if missing else ""
    if case.engine.state != "drained":
        sentence = f"{len(wrong):,} cells hold another value{beside}: the engine is {case.engine.state}"
        return CheckResult("wrong", Outcome.UNKNOWN, sentence, count=len(wrong), blame="engine")
    return CheckResult(
        "wrong",
        Outcome.FAIL,
        f"{len(wrong):,} cells hold another value than the log explains{beside}",
        word="wrong value",
        count=len(wrong),
        blame="engine",
        witnesses=case.witnesses(wrong),
    )
