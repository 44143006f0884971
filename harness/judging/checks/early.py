"""Early: a cell showed a count before enough of its events had been sent, which is wrong whatever the final count.

An event counts as sent when the hand-over of its slice to Kafka's client began, less one second for the difference
between clocks of processes. Sentinel records, whose send times are not recorded, count as always sent. Cells that hold
too many at the end are left to `duplicated`, and cells without events to `phantom`.

A maximum or a distinct count may at no time be larger than all events of its cell make it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from harness.evidence.changed_query import CutoverRule
from harness.evidence.observed import Watched
from harness.judging.checks.case import EXAMPLES, Ints, RunFacts, failed, first_rows, nobody_looked
from harness.judging.checks.kinds import GROWING
from harness.model import CheckResult, Outcome, Witness
from harness.util.texts import many
from workloads.base import Kind

TOLERANCE_US = 1_000_000
NOWHERE = -1


def check(case: RunFacts) -> CheckResult:
    if case.watched is None:
        return nobody_looked("early", case)
    if _another_question(case):
        return CheckResult("early", Outcome.PASS, "not checked: before the change the cells answered another query")
    seen = case.watched
    code, count = seen.cell, seen.count
    most = _most_by(case, seen)
    rows = np.flatnonzero(_more_than(case, seen, most))
    if not len(rows):
        return CheckResult(
            "early", Outcome.PASS, f"none of {many(len(count), 'change')} came before its events were sent"
        )
    firsts = rows[first_rows(code[rows])]
    witnesses = (
        Witness(
            cell=case.cell_name(int(code[row])),
            expected=f"at most {int(most[row])}",
            seen=str(int(count[row])),
            detail=case.when(int(seen.at_us[row])),
            from_ms=int(seen.at_us[row]) // 1000,
            until_ms=int(seen.at_us[row]) // 1000,
        )
        for row in firsts[:EXAMPLES]
    )
    sentence = f"{many(len(firsts), 'cell')} held more than the events sent by then allow"
    return failed("early", sentence, len(firsts), witnesses)


def _another_question(case: RunFacts) -> bool:
    return case.change is not None and case.change.means is not CutoverRule.CARRY


def impossible(case: RunFacts, seen: Watched) -> NDArray[np.bool_]:
    """Select seen counts that are larger than the events sent by then: they are no counts."""
    if case.oracle.merges or case.log_unread or _another_question(case):  # then it is unknown
        return np.zeros(len(seen.cell), dtype=np.bool_)
    return _more_than(case, seen, _most_by(case, seen))


def _more_than(case: RunFacts, seen: Watched, most: Ints) -> NDArray[np.bool_]:
    return np.asarray((seen.count > most) & np.isin(seen.cell, _judged(case)))


def _most_by(case: RunFacts, seen: Watched) -> Ints:
    """Return the largest value that each cell can have held when it was seen."""
    most = _sent_by(case, seen.cell, seen.at_us + TOLERANCE_US)
    others = np.flatnonzero(case.are(seen.cell, {Kind.MONOTONE}))
    most[others] = [case.expectation.may.count(cell) for cell in seen.cell[others].tolist()]
    return most


def _judged(case: RunFacts) -> Ints:
    """Return expected cells that are not too large at the end, and whose sent events are all in the log."""
    over = {*(d.cell for d in case.differences_of(GROWING) if d.surplus > 0), *case.doubt_in_all.missing, *case.unsure}
    counted = case.only(case.expectation.may, GROWING)
    return np.array([cell for cell in counted if cell not in over], dtype=np.int64)


def _sent_by(case: RunFacts, code: Ints, at_us: Ints) -> Ints:
    """Count the events of each cell that were sent by each time."""
    if not len(code):
        return np.zeros(0, dtype=np.int64)
    begun_us = int(at_us.min())
    width = int(at_us.max()) - begun_us + 2  # the last moment is that of all events that were sent later
    known, cell = np.unique(code, return_inverse=True)
    order = np.lexsort((at_us, cell))
    keys = (cell * width + (at_us - begun_us))[order]
    bounds = np.searchsorted(keys, np.arange(len(known) + 1) * width)
    sent = np.zeros(len(keys), dtype=np.int64)  # by the first row that counts them
    for part in case.judged:
        place = np.searchsorted(known, part.events.cell)
        asked = np.flatnonzero(np.append(known, NOWHERE)[place] == part.events.cell)
        place, since_us = place[asked], np.clip(part.sent_us[asked] - begun_us, 0, width - 1)
        first = np.searchsorted(keys, place * width + since_us)
        sent += np.bincount(first[first < bounds[place + 1]], minlength=len(sent))
    so_far = np.append(0, np.cumsum(sent))
    result = np.empty(len(keys), dtype=np.int64)
    result[order] = so_far[1:] - so_far[bounds[cell[order]]]
    return result
