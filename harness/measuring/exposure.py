"""Measure how long readers of the results saw a wrong count, whatever its final value. Pure arrays.

A count is certainly wrong while it is larger than the number of events sent by then, or smaller than a right count that
was shown before, and, if the final value is wrong and too small, from its last change on. That is a lower bound: a
count that is merely behind is not wrong.

If the job was changed to another question, a count is compared with the old question until the new job started, and
then with the declared rule. That is possible only for `carry`, and only for the keys that were polled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.evidence.changed_query import CutoverRule, asked_of
from harness.judging.changed import by_rule
from harness.judging.checks import question
from harness.judging.stored_run import StoredRun
from harness.measuring.latency import evidence
from harness.measuring.latency.evidence import WRONG, Evidence
from harness.measuring.latency.visibility import Floats, Ints, Samples
from harness.model import FaultReport

# A count that is ahead of its events for less than one poll may be a difference between clocks.
SHORTEST_S = 0.05
REPLACED = "values of the old job stay until the new one rewrites them, and no deadline for that is declared"
NOT_LOOKED_AT = "its new keys were not polled during the run"


@dataclass(frozen=True)
class Exposure:
    """Intervals in which a cell was seen with a wrong count, in s since the load start; infinite: never corrected."""

    cell: Ints  # by its code
    from_s: Floats
    to_s: Floats

    def within(self, from_s: float, to_s: float) -> Exposure:
        """Return the intervals that began before `to_s` and were not over by `from_s`."""
        touched = (self.from_s < to_s) & (self.to_s > from_s)
        return Exposure(self.cell[touched], np.maximum(self.from_s[touched], from_s), self.to_s[touched])

    def of_cells_s(self, end_s: float) -> Floats:
        """Return for each cell that was ever wrong how long it was, up to `end_s`."""
        _, place = np.unique(self.cell, return_inverse=True)
        lasted_s = np.minimum(self.to_s, end_s) - self.from_s
        return np.asarray(np.bincount(place, weights=np.maximum(lasted_s, 0.0)), dtype=np.float64)

    @property
    def never_corrected(self) -> int:
        """The number of cells that were never corrected."""
        return len(np.unique(self.cell[~np.isfinite(self.to_s)]))

    def wrong_at(self, moments_s: Floats) -> Ints:
        """Count the cells that were wrong at each time."""
        began = np.searchsorted(np.sort(self.from_s), moments_s, side="right")
        return np.asarray(began - np.searchsorted(np.sort(self.to_s), moments_s, side="right"), dtype=np.int64)


def unknowable(change: FaultReport | None) -> str:
    """Return why the right counts at each time are unknown after a change of the question; "" if they are known."""
    asked = asked_of(change.spec) if change else None
    if change is None or asked is None:
        return ""
    reasons = {
        question.UNPROVEN["no seam"]: not change.restored,
        question.WRONG["collision"]: "window_ms" in asked.words,
        NOT_LOOKED_AT: "by" in asked.words,
        REPLACED: asked.means is not CutoverRule.CARRY,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def exposure(run: StoredRun) -> Exposure:
    """Measure a stored run with known right counts. Raise MissingEvidence if a file is missing."""
    old, change, asked, anew = evidence.collect(run), run.change, run.question, run.countable_anew
    if not (change and asked and anew):
        return _shown(old)
    began_us = change.landed_ms * 1000
    restored = change.restored
    new = evidence.collect_by(run, asked, lambda: [by_rule(CutoverRule.CARRY, run.countable, anew, restored)])
    return _together([_shown(old, until_us=began_us), _shown(new, from_us=began_us)])


def _together(parts: Sequence[Exposure]) -> Exposure:
    return Exposure(*(np.concatenate([getattr(part, each.name) for part in parts]) for each in fields(Exposure)))


def _of_cells(samples: Samples, cells: range) -> Samples:
    """Select the samples of a range of cells; they are in the order of their cells."""
    begin, end = np.searchsorted(samples.cell, (cells.start, cells.stop)).tolist()
    return Samples(samples.cell[begin:end], samples.at_us[begin:end], samples.count[begin:end])


def _shown(found: Evidence, from_us: int = 0, until_us: float = np.inf) -> Exposure:
    """Measure between these times. Final errors are judged by the rule in force at the end."""
    cells, looks = found.cells, _since(found.samples, from_us)
    # Only counts have a known upper limit at each time.
    seen = cells.counts[looks.cell] & (looks.at_us < until_us)
    samples = Samples(looks.cell[seen], looks.at_us[seen], looks.count[seen])
    wrong_in_the_end = np.flatnonzero((cells.final == WRONG) & np.isinf(until_us))
    parts = [Exposure(np.empty(0, dtype=np.int64), np.empty(0), np.empty(0))]
    for some, events in found.events.parts():
        sent = cells.counts[events.cell]
        parts.append(stretches(_of_cells(samples, some), events.cell[sent], events.sent_us[sent], wrong_in_the_end))
    wrong = _together(parts)
    measured = ~cells.marked[wrong.cell]  # sentinel records have no exact send time
    epoch_s = found.epoch_ms / 1000
    from_s, to_s = wrong.from_s[measured], np.minimum(wrong.to_s[measured], until_us / 1e6)
    return Exposure(cells.code[wrong.cell[measured]], from_s - epoch_s, to_s - epoch_s)


def _since(samples: Samples, from_us: int) -> Samples:
    """Return the samples as a reader that started at `from_us` would see them: first each cell's current value."""
    order = np.lexsort((samples.at_us, samples.cell))
    cell, at_us, count = samples.cell[order], samples.at_us[order], samples.count[order]
    overwritten = (cell[1:] == cell[:-1]) & (at_us[1:] <= from_us)
    kept = ~np.append(overwritten, np.zeros(min(1, len(cell)), dtype=np.bool_))
    return Samples(cell[kept], np.maximum(at_us, from_us)[kept], count[kept])


def stretches(samples: Samples, sent_cell: NDArray[np.integer[Any]], sent_us: Ints, wrong_in_the_end: Ints) -> Exposure:
    """Find the intervals with wrong counts. `sent_*` has a row for each event that counts."""
    cell, at_us, count = samples.cell, samples.at_us, samples.count
    order = np.lexsort((at_us, cell))
    cell, at_us, count = cell[order], at_us[order], np.maximum(count[order], 0)
    last = np.append(cell[1:] != cell[:-1], np.ones(min(1, len(cell)), dtype=np.bool_))
    next_us = np.where(last, np.inf, np.append(at_us[1:], 0))
    covered_us, sent_by_then = _sent(cell, at_us, count, sent_cell, sent_us)
    high = covered_us > at_us
    shown = _highest_so_far(cell, np.minimum(count, sent_by_then))
    low = ~high & ((count < shown) | (last & np.isin(cell, wrong_in_the_end)))
    wrong = high | low
    end_us = np.where(high, np.minimum(next_us, covered_us), next_us)
    wrong &= end_us - at_us >= SHORTEST_S * 1e6
    return Exposure(cell[wrong], at_us[wrong] / 1e6, end_us[wrong] / 1e6)


def _sent(
    cell: Ints, at_us: Ints, count: Ints, sent_cell: NDArray[np.integer[Any]], sent_us: Ints
) -> tuple[Floats, Ints]:
    """Return for each sample when as many events as it shows had been sent, and how many had been sent by then."""
    order = np.lexsort((sent_us, sent_cell))
    sent_cell, sent_us = sent_cell[order], sent_us[order]
    begin, end = (np.searchsorted(sent_cell, cell, side=side) for side in ("left", "right"))
    wanted = begin + count - 1
    moments = np.append(sent_us.astype(np.float64), np.inf)
    covered_us = np.where(wanted < end, moments[np.minimum(wanted, len(sent_us))], np.inf)
    # Both are ordered by cell and time, so one sort of all rows counts the events before each sample.
    merged = np.lexsort(
        (np.append(np.zeros(len(sent_us)), np.ones(len(cell))), np.append(sent_us, at_us), np.append(sent_cell, cell))
    )
    is_event = merged < len(sent_us)
    before = np.cumsum(is_event)[~is_event]
    sent_by_then = np.empty(len(cell), dtype=np.int64)
    sent_by_then[merged[~is_event] - len(sent_us)] = before
    return np.where(count > 0, covered_us, -np.inf), sent_by_then - begin


def _highest_so_far(cell: Ints, count: Ints) -> Ints:
    """Return the running maximum within each cell; cells are in order."""
    width = int(count.max(initial=0)) + 1
    return np.asarray(np.maximum.accumulate(cell * width + count) - cell * width if len(cell) else count)
