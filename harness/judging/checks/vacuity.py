"""Vacuity: a run that could not have failed proves nothing, and is UNKNOWN."""

from __future__ import annotations

from collections.abc import Iterator

from harness.judging.checks import seam
from harness.judging.checks.case import RunFacts
from harness.judging.checks.question import FEWEST_CELLS
from harness.judging.scenario_conditions import unmet
from harness.model import CheckResult, Outcome
from harness.util.texts import many
from workloads.base import NEVER


def check(case: RunFacts) -> CheckResult:
    reasons = list(_reasons(case))
    if reasons:
        word = "" if case.cut_short else "vacuous"
        return CheckResult("vacuity", Outcome.UNKNOWN, "; ".join(reasons), word=word, blame="evidence")
    windows = len(case.begins_ms(case.expectation.may))
    crossing = f"; {many(seam.on_both_sides(case), 'cell')} on both sides of the seam" if case.seam else ""
    return CheckResult(
        "vacuity",
        Outcome.PASS,
        f"{many(case.census.records, 'countable event')} in {many(len(case.expectation.may), 'cell')} "
        f"of {many(windows, 'window')}{crossing}",
    )


def _reasons(case: RunFacts) -> Iterator[str]:
    if not case.sent:
        yield "nothing was sent"
    if not case.audit.found:
        yield "the Kafka log is empty"
    elif not case.census.rows:
        yield "the Kafka log holds no event that has to be counted"
    elif case.census.newest_ms < case.census.first_close_ms != NEVER:
        yield "no window ever closed"
    elif case.unbounded:
        yield (
            "a match or a place depends on each event, and the engine left no list of the events that it dropped as "
            "late: let it name them, or keep them"
        )
    elif case.seam and case.seam.until_ms is None and (cells := seam.on_both_sides(case)) < FEWEST_CELLS:
        yield f"{cells} cells have events in files and in Kafka, and fewer than {FEWEST_CELLS} prove nothing"
    else:
        yield from unmet(case)
