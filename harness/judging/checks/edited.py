"""Edited: the files of the run differ from those of its first verdict.

If files were changed, this is the only check, because no component can be blamed on their evidence. A run without
digests is judged, but never passes.
"""

from __future__ import annotations

from harness.evidence.observed import Edits
from harness.judging.checks.case import RunFacts, join
from harness.model import CheckResult, Outcome, Witness

SHOWN = 8


def check(case: RunFacts) -> CheckResult:
    return of(case.edits)


def of(edits: Edits) -> CheckResult:
    if edits.lack:
        return CheckResult("edited", Outcome.UNKNOWN, edits.lack, word="no digests", blame="evidence")
    if not edits.changed:
        sentence = f"all {edits.files:,} files are as they were when the run ended"
        return CheckResult("edited", Outcome.PASS, sentence)
    return CheckResult(
        "edited",
        Outcome.UNKNOWN,
        f"{join(edits.changed, SHOWN)}; a verdict needs the files that the run wrote",
        word="edited",
        count=len(edits.changed),
        blame="evidence",
        witnesses=tuple(map(_witness, edits.changed[:SHOWN])),
    )


def _witness(change: str) -> Witness:
    name, _, seen = change.partition(" ")
    return Witness(name, "unchanged since the end of the run", seen.removeprefix("was ").removeprefix("is "), "")
