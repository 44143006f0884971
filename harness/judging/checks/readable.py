"""Readable: each count is a whole number, spelled as Redis does, at each poll and at the end.

A planned fault that writes something else explains unreadable counts after it.
"""

from __future__ import annotations

from harness.evidence.observed import Glitch, Stray
from harness.judging.checks.case import EXAMPLES, RunFacts, counted, failed
from harness.model import CheckResult, FaultReport, Outcome, Witness
from harness.util.texts import many

EXPECTED = "a whole number"
# Faults that write something else than counts into the results. Faults that only empty them leave nothing to misread.
PLANTS = frozenset({"redis-wrong-type"})


def check(case: RunFacts) -> CheckResult:
    bad = [s for s in case.observed.strays if s.kind == "number"]
    seen = case.watched.unreadable if case.watched else ()
    causes = [f for f in case.faults if f.landed and f.at_ms and f.spec.action in PLANTS]
    bare = [each for each in seen if not any(_explains(fault, each) for fault in causes)]
    if bad or bare:
        sentence = "; ".join([*_in_the_end(bad), *_for_a_while(case, bare)])
        witnesses = (
            *(Witness(s.where, EXPECTED, repr(s.value), "not counted") for s in bad[:EXAMPLES]),
            *(case.glimpsed(each, EXPECTED) for each in bare[:EXAMPLES]),
        )
        return failed("readable", sentence, len(bad) + len(bare), witnesses, "unreadable")
    others = sum(s.kind == "key" for s in case.observed.strays)
    beside = f"; {many(others, 'key')} that are not results were ignored" if others else ""
    after = ", ".join(dict.fromkeys(fault.spec.text for fault in causes))
    explained = f"; {len(seen):,} could not be read after {after}, which explains it" if seen else ""
    return CheckResult("readable", Outcome.PASS, f"every count is a whole number{explained}{beside}")


def _in_the_end(bad: list[Stray]) -> list[str]:
    if not bad:
        return []
    return [f"{counted(bad, 'result')} can't be read as counts, the first one is {bad[0].value!r} at {bad[0].where}"]


def _for_a_while(case: RunFacts, bare: list[Glitch]) -> list[str]:
    if not bare:
        return []
    first = bare[0]
    return [
        f"{counted(bare, 'result')} could not be read as counts for a while, the first one, {first.text!r} at "
        f"{first.where}, {case.while_of(first)}"
    ]


def _explains(fault: FaultReport, glitch: Glitch) -> bool:
    return fault.at_ms * 1000 <= glitch.from_us
