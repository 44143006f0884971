"""Readable: what stands where a count belongs is a whole number, spelled as Redis spells it."""

from __future__ import annotations

from harness.checks.case import EXAMPLES, Case
from harness.model import CheckResult, Outcome, Witness

EXPECTED = "a whole number"


def check(case: Case) -> CheckResult:
    bad = [s for s in case.observed.strays if s.kind == "number"]
    if bad:
        return CheckResult(
            "readable",
            Outcome.FAIL,
            f"{len(bad):,} results can't be read as counts, the first one is {bad[0].value!r} at {bad[0].where}",
            word="unreadable",
            count=len(bad),
            blame="engine",
            witnesses=tuple(Witness(s.where, EXPECTED, repr(s.value), "not counted") for s in bad[:EXAMPLES]),
        )
    others = sum(s.kind == "key" for s in case.observed.strays)
    beside = f"; {others:,} keys that are no results were left alone" if others else ""
    return CheckResult("readable", Outcome.PASS, f"every count is a whole number{beside}")
