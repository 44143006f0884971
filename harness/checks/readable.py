"""Readable: every count in the results is a whole number."""

from __future__ import annotations

from harness.checks.case import Case
from harness.model import CheckResult, Outcome, Witness


def check(case: Case) -> CheckResult:
    bad = [s for s in case.observed.strays if s.kind == "number"]
    if bad:
        return CheckResult(
            "readable",
            Outcome.FAIL,
            f"{len(bad):,} counts are not whole numbers, the first one is {bad[0].value!r} at {bad[0].where}",
            word="unreadable",
            count=len(bad),
            blame="engine",
            witnesses=tuple(Witness(s.where, "a whole number", repr(s.value), "not counted") for s in bad[:5]),
        )
    others = sum(s.kind == "key" for s in case.observed.strays)
    beside = f"; {others:,} keys that are no results were left alone" if others else ""
    return CheckResult("readable", Outcome.PASS, f"every count is a whole number{beside}")
