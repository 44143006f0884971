"""Vanishing: results that are right when they are read, but will expire.

A manifest may declare how long results are kept (`retention_s`). A key that can have lived that long is as declared.
"""

from __future__ import annotations

from harness.judging.checks.case import RunFacts, failed
from harness.model import CheckResult, Expiring, Outcome, Witness
from harness.util.texts import many

NAME = "vanishing"


def check(case: RunFacts) -> CheckResult:
    if case.expiring is None:
        return CheckResult(NAME, Outcome.PASS, "not checked: only keys of Redis have a time to live", asked=False)
    found = [each for each in case.expiring if each.keys and not _as_declared(case, each)]
    if not found:
        return CheckResult(NAME, Outcome.PASS, _kept(case))
    first = found[0]
    sentence = f"{_said(first)}; if results should expire, declare retention_s in the manifest"
    return failed(NAME, sentence, first.keys, (_witness(case, each) for each in found))


def _as_declared(case: RunFacts, found: Expiring) -> bool:
    """A key may have been written at the start of the run."""
    begun_ms, ended_ms = case.span_ms or (0, 0)
    return 0 < case.retention_ms <= found.soonest_ms + ended_ms - begun_ms


def _kept(case: RunFacts) -> str:
    if case.retention_ms:
        return f"no key vanishes before the {case.retention_ms / 1000:g} s that the manifest declares"
    return "no key of the results has a time to live"


def _said(found: Expiring) -> str:
    when = "after the engine was stopped " if found.stopped else ""
    has = many(found.keys, "key of the results has", "keys of the results have")
    return f"{when}{has} a time to live, and the first is gone in {found.soonest_ms / 1000:.0f} s"


def _witness(case: RunFacts, found: Expiring) -> Witness:
    kept = f"kept for {case.retention_ms / 1000:g} s" if case.retention_ms else "kept"
    return Witness(
        found.example, kept, f"gone in {found.soonest_ms / 1000:.0f} s", "by PTTL, when the results were read"
    )
