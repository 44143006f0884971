"""Ambiguous: a cell has two values or more, and a reader gets one of them by chance.

Two keys of a pattern, two hashes of Yahoo's schema, or two printed lines may belong to one cell. Later records of a
cell in a topic are no second values: they replace the earlier ones.
"""

from __future__ import annotations

from harness.evidence.observed import Ambiguity
from harness.judging.checks.case import EXAMPLES, RunFacts, failed, join
from harness.model import CheckResult, Outcome, Witness
from harness.util.texts import many


def check(case: RunFacts) -> CheckResult:
    found = case.observed.ambiguities
    if not found:
        return CheckResult("ambiguous", Outcome.PASS, "no cell has two values")
    sentence = (
        f"{many(len(found), 'cell has', 'cells have')} two values or more, so the value that is read is arbitrary; "
        f"the first one is {case.cell_name(found[0].cell)} with {join(found[0].texts)}"
    )
    return failed("ambiguous", sentence, len(found), (_witness(case, each) for each in found[:EXAMPLES]))


def _witness(case: RunFacts, each: Ambiguity) -> Witness:
    return Witness(
        case.cell_name(each.cell),
        f"one value of its {each.what}",
        join(each.texts),
        many(len(each.texts), "value"),
    )
