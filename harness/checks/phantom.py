"""Phantom: results for a campaign or a window in which no event of the log lies."""

from __future__ import annotations

from harness.checks.case import Case, join
from harness.model import CheckResult, Outcome, Witness


def check(case: Case) -> CheckResult:
    windows = [d for d in case.differences if d.may == 0]
    campaigns = [s for s in case.observed.strays if s.kind == "campaign"]
    if not windows and not campaigns:
        return CheckResult("phantom", Outcome.PASS, "no campaign and no window that nobody expects")
    parts = []
    if windows:
        parts.append(f"{len(windows):,} cells in which no event lies")
    if campaigns:
        parts.append(f"{len(campaigns):,} counts of unknown campaigns ({join((s.where for s in campaigns), 2)})")
    strangers = tuple(Witness(s.where, "no such campaign", s.value, "orphan hash") for s in campaigns[:5])
    return CheckResult(
        "phantom",
        Outcome.FAIL,
        "the results hold " + " and ".join(parts),
        word="phantom",
        count=len(windows) + len(campaigns),
        blame="engine",
        witnesses=case.witnesses(windows) + strangers,
    )
