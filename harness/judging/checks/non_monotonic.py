"""Non-monotonic: a count decreased between polls, although a total of events only grows.

A planned fault that removes counts, or brings an older writer back, explains decreases after it: they show how long
readers got too low a count, and are no error by themselves. A count that stays too low is also `lost`. A count that was
impossibly high is `early`: its decrease only ends that error.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.evidence.changed_query import CutoverRule
from harness.evidence.observed import Watched
from harness.judging.checks import early
from harness.judging.checks.case import EXAMPLES, RunFacts, failed, nobody_looked
from harness.judging.checks.kinds import GROWING
from harness.model import CheckResult, FaultReport, Outcome, Witness
from harness.util.texts import many

# Faults after which counts may decrease. A plain kill is none of them: a replayed batch writes the same totals.
TAKES_BACK = frozenset(
    {
        "zombie",
        "two-drivers",
        "redis-kill",
        "redis-restart-empty",
        "redis-flush",
        "redis-evict",
        "redis-wrong-type",
        "postgresql-promote",
        "checkpoint-delete-all",
        "checkpoint-restore-older",
        "checkpoint-truncate-state",
        "checkpoint-flip-state",
        "change-sink",
    }
)


@dataclass(frozen=True)
class Dip:
    """One decrease, and how long it was seen; None: to the end."""

    cell: int
    at_us: int
    before: int
    after: int
    lasted_us: int | None


def check(case: RunFacts) -> CheckResult:
    if case.watched is None:
        return nobody_looked("non-monotonic", case)
    growing = case.are(case.watched.cell, GROWING)
    dips = _dips(case.watched, growing)
    if dips:  # a value that is no count may have made them
        dips = _dips(case.watched, growing & ~early.impossible(case, case.watched))
    causes = [f for f in case.faults if f.landed and _takes_back(f)]
    bare = [dip for dip in dips if not any(_explains(fault, dip) for fault in causes)]
    if bare:
        where = many(len({dip.cell for dip in bare}), "cell")
        sentence = f"{many(len(bare), 'time')} a count went back, in {where}, {_longest(bare)}"
        worst = sorted(bare, key=_step)[:EXAMPLES]
        return failed("non-monotonic", sentence, len(bare), (_witness(case, dip) for dip in worst))
    if dips:
        after = ", ".join(dict.fromkeys(fault.spec.text for fault in causes))
        cells = len({dip.cell for dip in dips})
        sentence = f"{many(cells, 'cell')} went back after {after}, which explains it: {_longest(dips)}"
        return CheckResult("non-monotonic", Outcome.PASS, sentence, count=len(dips))
    return CheckResult(
        "non-monotonic", Outcome.PASS, f"none of {many(len(case.watched.count), 'change')} lowered a count"
    )


def _dips(seen: Watched, asked: NDArray[np.bool_]) -> list[Dip]:
    """Find decreases by cell and time in the polled values, for the selected rows."""
    order = np.lexsort((seen.at_us, seen.cell))
    order = order[asked[order]]
    cells, at_us, count = (column[order] for column in (seen.cell, seen.at_us, seen.count))
    same = np.diff(cells) == 0
    ends = np.append(np.flatnonzero(~same), len(count) - 1)
    found = []
    for row in np.flatnonzero(same & (np.diff(count) < 0)) + 1:
        last = int(ends[np.searchsorted(ends, row)])
        right = np.flatnonzero(count[row : last + 1] >= count[row - 1])
        lasted_us = int(at_us[row + right[0]] - at_us[row]) if len(right) else None
        found.append(Dip(int(cells[row]), int(at_us[row]), int(count[row - 1]), int(count[row]), lasted_us))
    return found


def _takes_back(fault: FaultReport) -> bool:
    return fault.spec.action in TAKES_BACK or fault.spec.options.get("means") in (CutoverRule.FRESH, CutoverRule.ANEW)


def _explains(fault: FaultReport, dip: Dip) -> bool:
    return bool(fault.at_ms) and fault.at_ms * 1000 <= dip.at_us


def _longest(dips: list[Dip]) -> str:
    if any(dip.lasted_us is None for dip in dips):
        return "some for good"
    return f"for up to {max(dip.lasted_us or 0 for dip in dips) / 1e6:.1f} s"


def _step(dip: Dip) -> tuple[int, int]:
    return dip.after - dip.before, dip.at_us


def _witness(case: RunFacts, dip: Dip) -> Witness:
    back = "and never came back" if dip.lasted_us is None else f"and was back after {dip.lasted_us / 1e6:.1f} s"
    return Witness(
        cell=case.cell_name(dip.cell),
        expected=f"at least {dip.before}, which was seen before",
        seen=str(dip.after),
        detail=f"{case.when(dip.at_us)}, {back}",
        from_ms=dip.at_us // 1000,
        until_ms=dip.at_us // 1000,
    )
