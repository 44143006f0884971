"""The section of failed and undecided checks with their witnesses: the first to read when a run is not a PASS."""

from __future__ import annotations

from harness.model import CheckResult, Outcome, Verdict, Witness
from reports.evidence import Evidence
from reports.page import Section, Table

COLUMNS = ("where", "expected", "seen", "evidence")


def section(evidence: Evidence) -> Section | None:
    wrong = [check for check in evidence.verdict.checks if check.outcome is not Outcome.PASS]
    if not wrong:
        return None
    return Section(
        "wrong",
        "What is wrong" if evidence.verdict.outcome is Outcome.FAIL else "What can't be decided",
        text=tuple(_sentence(check) for check in wrong if not check.witnesses),
        tables=tuple(
            Table(COLUMNS, tuple(_row(witness) for witness in check.witnesses), _caption(check, evidence.verdict))
            for check in wrong
            if check.witnesses
        ),
    )


def _caption(check: CheckResult, verdict: Verdict) -> str:
    """A sentence that is already in the verdict is not repeated."""
    if check.sentence not in verdict.sentence:
        return _sentence(check)
    return f"{check.word or check.name}{f', blamed on the {check.blame}' if check.blame else ''}"


def _sentence(check: CheckResult) -> str:
    blame = f" Blamed on the {check.blame}." if check.blame else ""
    return f"{check.outcome.value}, {check.word or check.name}: {check.sentence}.{blame}"


def _row(witness: Witness) -> tuple[str, ...]:
    ids = f"; events {', '.join(witness.event_ids)}" if witness.event_ids else ""
    return (witness.cell, witness.expected, witness.seen, witness.detail + ids)
