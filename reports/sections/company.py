"""The section with the cost of a second reader of the job's results."""

from __future__ import annotations

from harness.measuring.company import WORDS
from reports import company
from reports.evidence import Evidence
from reports.page import Section, Table

HOW = (
    "Each period with another reader is compared with the mean of its two neighbours without one. If the range of "
    "a ratio contains 1, the reader has no measurable cost. The reader is part of the harness."
)


def section(evidence: Evidence) -> Section | None:
    found = evidence.measurement.company
    if found is None:
        return None
    why = company.reasons(found)
    head = ("reader", "when", *(label for label, _ in WORDS.values()))
    return Section(
        "company",
        "Another reader",
        text=(HOW, *([f"Not known: {why}."] if why else [])),
        tables=(Table(head, tuple(company.rows(found))),),
    )
