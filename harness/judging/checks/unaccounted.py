"""Unaccounted: the totals do not balance.

Each countable event of the log must be expected or dropped as late, and the results must be the expectation less
missing plus surplus events. The check uses totals only, not the comparison of cells, so that an event lost by the judge
itself shows here. That is UNKNOWN, because the harness' own evidence is bad.
"""

from __future__ import annotations

from harness.judging.checks.case import RunFacts
from harness.judging.checks.kinds import COUNTS
from harness.model import CheckResult, Outcome
from harness.util.texts import many


def check(case: RunFacts) -> CheckResult:
    wrong = [*_expected_is_what_the_log_holds(case), *_seen_is_what_was_told(case)]
    if wrong:
        sentence = "the books do not balance: " + "; ".join(wrong)
        return CheckResult("unaccounted", Outcome.UNKNOWN, sentence, "unaccounted", len(wrong), "evidence")
    counted, late = case.only(case.observed.counts, COUNTS).total, _late(case)
    wrong_cells = case.differences_of(COUNTS)
    lost, double = (sum(abs(d.surplus) for d in wrong_cells if (d.surplus > 0) is more) for more in (False, True))
    census = case.census
    counts, countable = census.counts, census.counting_records
    other = case.audit.found - countable
    untold = census.open_counts - sum(case.observed.counts.count(cell) for cell in census.open_count_cells)
    parts = (
        f"{counted:,} counted",
        f"{late:,} late",
        f"{lost:,} missing",
        f"-{double:,} too many",
        f"{untold:,} in windows that are still open",
    )
    records, beside = many(case.audit.found, "record"), f"{other:,} that do not count"
    balance = f"{records} = {_sum(*parts, beside)}"
    if counts != countable:  # if windows overlap, an event counts in each of its windows
        own = _sum(f"{countable:,} that count", beside)
        balance = f"{records} = {own}; the {countable:,} count {counts:,} times = {_sum(*parts)}"
    slack = case.slack
    return CheckResult("unaccounted", Outcome.PASS, f"{balance}, to {slack:,}" if slack else balance)


def _sum(*parts: str) -> str:
    return " + ".join(part for part in parts if not part.startswith(("0 ", "-0 "))).replace("+ -", "- ")


def _late(case: RunFacts) -> int:
    """Count how often an event was too late for a cell that counts it."""
    return case.census.dropped_counts if case.exact else case.late_dropped


def _expected_is_what_the_log_holds(case: RunFacts) -> list[str]:
    census, known = case.census, case.exact or not case.drops_late
    may, must = (case.only(each, COUNTS).total for each in (case.expectation.may, case.expectation.must))
    dropped, still_open = (
        (census.dropped_counts, census.kept_open_counts)
        if known
        else (census.permitted_counts, census.in_time_open_counts)
    )
    # An earlier run of the same batch may have counted some of the dropped events.
    countable = census.counts
    least = countable - dropped - still_open
    if must == least and must <= may <= countable:
        return []
    return [
        f"the log holds {many(countable, 'countable event')}, at least {least:,} of them must count, and "
        f"{_range(must, may)} are expected"
    ]


def _seen_is_what_was_told(case: RunFacts) -> list[str]:
    told = sum(d.surplus for d in case.differences_of(COUNTS))
    ledgers = (case.observed.counts, case.allowed.must, case.allowed.may)
    seen, must, may = (case.only(each, COUNTS).total for each in ledgers)
    if must + told <= seen <= may + told:
        return []
    return [
        f"the results hold {many(seen, 'event')} where {_range(must, may)} are expected, and the cells that are wrong "
        f"explain {told:+,} of the difference"
    ]


def _range(low: int, high: int) -> str:
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
