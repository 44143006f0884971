"""Early: a count that was seen before enough of its events were sent. Such a count is no count, whatever it ends as.

An event is held to be sent when its slice began to be handed to Kafka's client, less a second for clocks of processes
that differ; the harness' own marks, of which nobody booked when, are held to be sent always. Cells that hold too many
in the end are left to `duplicated`, and those in which no event lies to `phantom`.
"""

from __future__ import annotations

import numpy as np

from harness.judging.asked import Means
from harness.judging.checks.case import EXAMPLES, Case, Ints, first_rows, nobody_looked
from harness.judging.checks.kinds import COUNTS
from harness.judging.grouping import numbered, rows_of_groups
from harness.model import CheckResult, Outcome, Witness
from harness.texts import many

TOLERANCE_US = 1_000_000
NOWHERE = -1


def check(case: Case) -> CheckResult:
    if case.watched is None:
        return nobody_looked("early", case)
    if case.change and case.change.means is not Means.CARRY:
        return CheckResult(
            "early", Outcome.PASS, "not looked for: until the change its cells answered another question"
        )
    seen = case.watched
    code, count = seen.cell, seen.count
    sent = _sent_by(case, code, seen.at_us + TOLERANCE_US)
    rows = np.flatnonzero((count > sent) & np.isin(code, _judged(case)))
    if not len(rows):
        return CheckResult(
            "early", Outcome.PASS, f"none of {many(len(count), 'change')} came before its events were sent"
        )
    firsts = rows[first_rows(code[rows])]
    return CheckResult(
        "early",
        Outcome.FAIL,
        f"{many(len(firsts), 'cell')} held more than had been sent by then",
        word="early",
        count=len(firsts),
        blame="engine",
        witnesses=tuple(
            Witness(
                cell=case.cell_name(int(code[row])),
                expected=f"at most {int(sent[row])}",
                seen=str(int(count[row])),
                detail=f"{(int(seen.at_us[row]) / 1000 - case.epoch_ms) / 1000:.1f} s into the load",
                from_ms=int(seen.at_us[row]) // 1000,
                until_ms=int(seen.at_us[row]) // 1000,
            )
            for row in firsts[:EXAMPLES]
        ),
    )


def _judged(case: Case) -> Ints:
    """Cells that anybody expects, that hold not too many in the end, and of which the log holds all that was sent."""
    over = {*(d.cell for d in case.differences_of(COUNTS) if d.surplus > 0), *case.doubt_in_all.missing}
    counted = case.only(case.expectation.may, COUNTS)
    return np.array([cell for cell in counted if cell not in over], dtype=np.int64)


def _sent_by(case: Case, code: Ints, at_us: Ints) -> Ints:
    """How many events of each cell were sent until each moment."""
    if not len(code):
        return np.zeros(0, dtype=np.int64)
    begun_us = int(at_us.min())
    width = int(max(case.sent_us.max(initial=0), at_us.max())) - begun_us + 1
    known, cell = numbered(case.events.cell)
    wanted = np.searchsorted(known, code)
    wanted[np.append(known, NOWHERE)[wanted] != code] = NOWHERE
    result = np.zeros(len(code), dtype=np.int64)
    for cells, rows in rows_of_groups(cell, len(known)):
        keys = np.sort(cell[rows].astype(np.int64) * width + np.maximum(case.sent_us[rows] - begun_us, 0))
        asked = np.flatnonzero((wanted >= cells.start) & (wanted < cells.stop))
        begin = wanted[asked] * width
        until = np.searchsorted(keys, begin + (at_us[asked] - begun_us), side="right")
        result[asked] = until - np.searchsorted(keys, begin, side="left")
    return result
