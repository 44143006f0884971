"""Wrong: the value of a cell that is no count, or of one event, is another one than the log explains.

By how much it is wrong says nothing of how many events are missing or too many: a refund that is lost makes a sum too
large. The events of the cell are named.
"""

from __future__ import annotations

from dataclasses import replace

from harness.judging.checks.case import EXAMPLES, Case
from harness.judging.checks.kinds import OTHERS
from harness.judging.ledger import Difference
from harness.model import CheckResult, Outcome, Witness
from harness.texts import many


def check(case: Case) -> CheckResult:
    wrong = [d for d in case.differences_of(OTHERS) if not case.is_empty(d.cell)]
    count = len(wrong) + len(case.unwritten)
    if not count:
        return CheckResult("wrong", Outcome.PASS, "no cell holds another value")
    missing = sum(d.seen == 0 for d in wrong) + len(case.unwritten)
    beside = f", {missing:,} of them hold none" if missing else ""
    if case.engine.state != "drained":
        sentence = f"{many(count, 'cell holds', 'cells hold')} another value{beside}: the engine is {case.engine.state}"
        return CheckResult("wrong", Outcome.UNKNOWN, sentence, count=count, blame="engine")
    return CheckResult(
        "wrong",
        Outcome.FAIL,
        f"{many(count, 'cell holds', 'cells hold')} another value than the log explains{beside}",
        word="wrong value",
        count=count,
        blame="engine",
        witnesses=(*case.witnesses(wrong), *(_unwritten(case, cell) for cell in case.unwritten[:EXAMPLES])),
    )


def _unwritten(case: Case, cell: int) -> Witness:
    """A value of 0 is a value: whoever reads nothing there does not know it."""
    return replace(case.witness(Difference(cell, 0, 0, 0)), seen="nothing")
