"""Oracle: the fold of the tape and the recount of the log must agree, cell by cell.

They share no arithmetic: one counts the plan's columns, the other the bytes that Kafka returned. If the log differs
from the tape (check `log`), the engine is judged by the recount.
"""

from __future__ import annotations

from harness.judging.checks.case import RunFacts
from harness.model import CheckResult, Outcome, Witness
from harness.util.texts import many


def check(case: RunFacts) -> CheckResult:
    difference = case.log_ledger - case.tape_ledger
    if not len(difference):
        return CheckResult(
            "oracle", Outcome.PASS, "the counts expected from the tape and those from the log agree in every cell"
        )
    if case.cut_short:
        return CheckResult("oracle", Outcome.UNKNOWN, "the load was cut short, so the log does not match the tape")
    worst = sorted(difference.items(), key=lambda item: -abs(item[1]))[:5]
    return CheckResult(
        "oracle",
        Outcome.UNKNOWN,
        f"the counts expected from the tape and those from the log differ in {many(len(difference), 'cell')}",
        word="oracle",
        count=len(difference),
        blame="evidence",
        witnesses=tuple(
            Witness(
                case.cell_name(cell),
                str(case.tape_ledger.count(cell)),
                str(case.log_ledger.count(cell)),
                f"log {by:+d} against the tape",
            )
            for cell, by in worst
        ),
    )
