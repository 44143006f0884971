"""The section with the cost of a second reader of the job's results, and the same in a sentence."""

from __future__ import annotations

from collections.abc import Iterator

from harness.measuring.company import WORDS
from harness.measuring.measurement import Company, Lack, Quantity
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
    why = reasons(found)
    head = ("reader", "when", *(label for label, _ in WORDS.values()))
    return Section(
        "company",
        "Another reader",
        text=(HOW, *([f"Not known: {why}."] if why else [])),
        tables=(Table(head, tuple(rows(found))),),
    )


def rows(found: Company) -> Iterator[tuple[str, ...]]:
    """Yield a row for each turn, and a last row with the ratios of with a reader to without."""
    for turn in found.turns:
        told = (_figure(name, turn.figures[name]) for name in WORDS)
        yield "with" if turn.reads else "without", f"{turn.from_s:.1f} to {turn.until_s:.1f} s", *told
    yield "with / without", "", *(_ratio(found.ratios[name]) for name in WORDS)


def reasons(found: Company) -> str:
    """List each reason for an unknown ratio once."""
    return "; ".join(dict.fromkeys(each.note for each in found.ratios.values() if each.lack is Lack.UNKNOWN))


def in_words(found: Company) -> str:
    """Summarize the ratios in one sentence."""
    known = {name: each for name, each in found.ratios.items() if each.value is not None}
    if not known:
        return f"its cost is not known: {reasons(found)}"
    said = (f"{WORDS[name][0]} {_ratio(each)}" for name, each in known.items())
    return f"ratio with and without the reader: {', '.join(said)}"


def _figure(name: str, value: float | None) -> str:
    unit = WORDS[name][1]
    if value is None:
        return "-"
    return f"{value:,.0f} {unit}" if unit == "ms" else f"{value:.3f} {unit}"


def _ratio(found: Quantity) -> str:
    return found.text(lambda value: f"{value:.2f} ({found.note})")
