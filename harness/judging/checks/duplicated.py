"""Duplicated: a cell of a known window holds more than the Kafka log can explain.

If the engine's batch log is known, the surplus is compared with the counts of each batch. If one batch explains all of
it, that batch was counted again, and the message names it with the fault that made it run again. If maxima or distinct
counts are too large as well, no countable event explains the surplus: that is `phantom`.
"""

from __future__ import annotations

import numpy as np

from harness.evidence.ledger import Difference, Ledger
from harness.evidence.observed import NO_BATCH
from harness.judging.checks import removed, reruns, seam
from harness.judging.checks.case import RunFacts, failed, join
from harness.judging.checks.kinds import COUNTS, TIMES
from harness.model import CheckResult, Outcome
from harness.util.texts import clock, many
from workloads.base import Kind

FEW = 0.1  # of the windows may hold a maximum that is wrong for another reason


def check(case: RunFacts) -> CheckResult:
    over = [d for d in case.differences_of(TIMES) if d.surplus > 0 and d.may > 0]
    if not over:
        return CheckResult("duplicated", Outcome.PASS, "no cell holds too many")
    surplus = sum(d.surplus for d in over)
    sentence = f"{case.events_said(surplus)} too many in {many(len(over), 'cell')}{case.in_several}"
    others = _others(case, over)
    sentence = f"{sentence}{others or _cause(case, over)}"
    return failed("duplicated", sentence, surplus, case.witnesses(over), "phantom" if others else "duplicated")


def _others(case: RunFacts, over: list[Difference]) -> str:
    """Detect that events were counted that should not count here.

    An event that counts twice makes no maximum larger, and one that counts in another window is missing from its own.
    """
    if any(d.surplus < 0 for d in case.differences_of(COUNTS)):
        return ""
    windows = {case.window(d.cell) for d in over}
    grown = [d for d in case.differences_of({Kind.MONOTONE}) if d.surplus > 0 and case.window(d.cell) in windows]
    if len({case.window(d.cell) for d in grown}) <= FEW * len(windows):
        return ""
    larger = many(len(grown), "value of the same windows is", "values of the same windows are")
    return f": the job counts events that must not count here, because {larger} too large as well"


def _cause(case: RunFacts, over: list[Difference]) -> str:
    surplus = Ledger((d.cell, d.surplus) for d in over)
    windows = _windows(case, over)
    for batch in np.unique(case.batch[case.batch != NO_BATCH]):
        counts = case.only(case.fold((case.batch == int(batch)) & ~case.dropped), COUNTS)
        if times := _how_often(counts, surplus):
            more = {1: "once", 2: "twice"}.get(times, f"{times} times")
            return f": exactly batch {batch} {more} more{_why(case, int(batch))}{windows}"
    if cause := removed.aborted(case, over) or reruns.counted_twice(case, over) or seam.counted_twice(case, over):
        return f": {cause}{windows}"
    return windows


def _windows(case: RunFacts, over: list[Difference]) -> str:
    """Format the windows' starts; "" if cells have no time."""
    begins_ms = [each for each in case.begins_ms(d.cell for d in over) if each]
    return f", windows {join(dict.fromkeys(map(clock, begins_ms)), 4)}" if begins_ms else ""


def _how_often(counts: Ledger, surplus: Ledger) -> int:
    """Return the factor between counts and surplus, equal in every cell; 0 if there is none.

    A replay may itself be replayed.
    """
    times = surplus.total // max(1, counts.total)
    return times if Ledger((cell, times * count) for cell, count in counts.items()) == surplus else 0


def _why(case: RunFacts, batch: int) -> str:
    faults = [f for f in case.faults if f.landed and f.batch == batch and f.replayed]
    return f", which was replayed after {faults[0].spec.text}" if faults else ""
