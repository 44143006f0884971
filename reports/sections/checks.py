"""The section with all checks and their findings."""

from __future__ import annotations

from reports.evidence import Evidence
from reports.page import Section, Table


def section(evidence: Evidence) -> Section:
    rows = tuple((check.outcome.value, check.name, check.sentence) for check in evidence.verdict.checks)
    return Section("checks", "Checks", tables=(Table(("outcome", "check", "what was seen"), rows),))
