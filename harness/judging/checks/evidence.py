"""Evidence: all evidence could be read, and the files of a run agree.

A file that is missing, emptied, or contradicts another one prevents a PASS. So does evidence that Kafka or Redis did
not return, and progress that reports records before they can have been read.
"""

from __future__ import annotations

from harness.judging import impossible_progress
from harness.judging.checks.case import RunFacts
from harness.model import CheckResult, Outcome
from workloads.base import NEVER

FAILED_FIRST = CheckResult(
    "first verdict",
    Outcome.UNKNOWN,
    "the first verdict of this run was FAIL, but by its files it is right now. The files were changed together with "
    "their digests, or this version judges differently; run it again",
    word="contradicted",
    count=1,
    blame="evidence",
)


def check(case: RunFacts) -> CheckResult:
    if case.not_read:
        return CheckResult("evidence", Outcome.UNKNOWN, case.not_read, word="unread", count=1, blame="evidence")
    contradictions = [*case.contradictions, *_told_ahead(case)]
    if not contradictions:
        return CheckResult("evidence", Outcome.PASS, "no file of the run contradicts another one")
    return CheckResult(
        "evidence",
        Outcome.UNKNOWN,
        "; ".join(contradictions),
        word="contradicted",
        count=len(contradictions),
        blame="evidence",
    )


def _told_ahead(case: RunFacts) -> list[str]:
    """Ignore lines with times outside the run, which `stale` reports."""
    begun_ms, ended_ms = case.span_ms or (0, NEVER)
    told = [line for line in case.told if begun_ms <= line.at_ms <= ended_ms]
    words = impossible_progress.of_the_load(told, case.judged, case.behind_ms)
    return [words] if words else []
