"""Order: if the sink claims it, outputs of a key leave in order of their events' times.

Of two outputs, the later one must not belong to the older event. Events with equal times may leave in any order, and so
may those of two keys. An output that left twice has the place of its first time.
"""

from __future__ import annotations

import numpy as np

from harness.judging.checks.case import EXAMPLES, Ints, RunFacts, failed
from harness.model import CheckResult, Outcome, Witness
from harness.util.texts import many


def check(case: RunFacts) -> CheckResult:
    if not case.in_order:
        return CheckResult("order", Outcome.PASS, "this sink claims no order")
    if not case.observed.left:
        sentence = (
            "the results do not record when an output left, because their records are not outputs of events. "
            "in_order = true in the manifest is only for such outputs"
        )
        return CheckResult("order", Outcome.UNKNOWN, sentence, word="no order", blame="evidence")
    cells, times_ms = _left(case)
    newest_ms = _newest_before(case.oracle.codes.keys(cells), times_ms)
    behind = np.flatnonzero(times_ms < newest_ms)
    if not len(behind):
        return CheckResult(
            "order", Outcome.PASS, f"{many(len(cells), 'output')} left in the order of their events, key by key"
        )
    worst = behind[np.argsort(times_ms[behind] - newest_ms[behind], kind="stable")][:EXAMPLES]
    sentence = f"{many(len(behind), 'output')} left after the output of a newer event of the same key"
    witnesses = (_witness(case, int(cells[row]), int(newest_ms[row] - times_ms[row])) for row in worst)
    return failed("order", sentence, len(behind), witnesses, "out of order")


def _witness(case: RunFacts, cell: int, behind_ms: int) -> Witness:
    return Witness(
        cell=case.cell_name(cell),
        expected="before newer ones",
        seen="behind one of them",
        detail=f"that is {behind_ms / 1000:.3f} s newer",
        event_ids=(f"{case.oracle.codes.field(cell):012x}",),
    )


def _left(case: RunFacts) -> tuple[Ints, Ints]:
    """Return outputs of logged events, by key and then in the order in which they left, with the events' times."""
    left = case.observed.left
    known, first = np.unique(case.events.cell, return_index=True)
    cells, place = np.array([*left], dtype=np.int64), np.array([*left.values()], dtype=np.int64)
    cells = cells[np.lexsort((place, case.oracle.codes.keys(cells)))]
    cells = cells[np.isin(cells, known)]
    return cells, case.events.time_ms[first[np.searchsorted(known, cells)]]


def _newest_before(keys: Ints, times_ms: Ints) -> Ints:
    """Return the newest time up to each row within its key; rows of a key are adjacent."""
    newest_ms = times_ms.copy()
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    for part in np.split(newest_ms, starts[1:]):
        np.maximum.accumulate(part, out=part)
    return newest_ms
