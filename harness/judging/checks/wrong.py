"""Wrong: a cell's value that is no count, or the output of one event, differs from the one that the log explains.

The difference does not show how many events are missing or extra: a lost refund makes a sum too large, and an event
that counts twice makes no maximum larger. The events of the cell are named. A maximum that is too small because events
are missing is `lost`.
"""

from __future__ import annotations

from dataclasses import replace

from harness.evidence.ledger import Difference
from harness.judging.checks.case import EXAMPLES, RunFacts, failed
from harness.judging.checks.kinds import OTHERS
from harness.model import CheckResult, Outcome, Witness
from harness.util.texts import many
from workloads.base import NULL


def check(case: RunFacts) -> CheckResult:
    lost = {d.cell for d in case.lacking_events}
    wrong = [d for d in case.differences_of(OTHERS) if d.cell not in lost and not case.is_empty(d.cell)]
    count = len(wrong) + len(case.unwritten)
    if not count:
        return CheckResult("wrong", Outcome.PASS, "no cell holds another value")
    zeros = set(case.observed.zeros)  # a 0 that is there is a value
    missing = sum(d.seen == 0 and d.cell not in zeros for d in wrong) + len(case.unwritten)
    beside = f", {many(missing, 'of them holds', 'of them hold')} none" if missing else ""
    if case.engine.state != "drained":
        sentence = f"{many(count, 'cell holds', 'cells hold')} another value{beside}: the engine is {case.engine.state}"
        return CheckResult("wrong", Outcome.UNKNOWN, sentence, count=count, blame="engine")
    cells = many(count, "cell holds", "cells hold")
    sentence = f"{cells} another value than the log explains{beside}{_which(case, wrong)}"
    witnesses = (*case.witnesses(wrong), *(_unwritten(case, cell) for cell in case.unwritten[:EXAMPLES]))
    return failed("wrong", sentence, count, witnesses, "wrong value")


def _which(case: RunFacts, wrong: list[Difference]) -> str:
    """Name the wrong values and the direction of the error, if the question has several values."""
    values, parts = case.oracle.values, []
    for number, value in enumerate(values) if len(values) > 1 else ():
        own = [d for d in wrong if case.oracle.codes.key(d.cell) // case.oracle.groups == number]
        sides = {(d.surplus > 0) for d in own if NULL not in (d.seen, d.may)}
        way = "" if len(sides) != 1 else " too large" if sides == {True} else " too small"
        parts += [f"{value.name} in {len(own):,}{way}{_as_another(case, own, number)}"] if own else []
    return f": {'; '.join(parts)}" if parts else ""


def _as_another(case: RunFacts, wrong: list[Difference], own: int) -> str:
    """Name the other value that each of these cells holds instead, such as all events instead of distinct ones."""
    for number, other in enumerate(case.oracle.values):
        there = [case.beside(d.cell, number) for d in wrong] if number != own else []
        if (
            there
            and any(d.seen for d in wrong)
            and all(case.observed.counts.count(c) == d.seen for c, d in zip(there, wrong, strict=True))
        ):
            return f" (each is the number of {other.name})"
    return ""


def _unwritten(case: RunFacts, cell: int) -> Witness:
    """A value of 0 is a value: a reader that finds nothing does not get it."""
    return replace(case.witness(Difference(cell, 0, 0, 0)), seen="nothing")
