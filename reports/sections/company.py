"""The section with the cost of a second reader of the job's results."""

from __future__ import annotations

from harness.measuring.company import WORDS
from reports import company
from reports.evidence import Evidence
from reports.page import Section, Table

HOW = (
    "Each turn with another reader is held against the mean of its two neighbours without. Where the range of a ratio "
    "holds 1, its cost is not to be told from none. The reader is a part of the harness."
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
