"""Explain errors at the boundary between files and Kafka; "" if the seam explains nothing.

Each candidate is a range of records next to the seam that a reader counts twice or skips if it starts in Kafka too
early, too late, or without the files' content.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from harness.evidence.ledger import Difference, Ledger
from harness.evidence.observed import LogEvents
from harness.judging.checks.case import RunFacts
from harness.judging.checks.kinds import COUNTS
from harness.judging.lateness import Ends, below, between, in_files
from harness.model import FileSeam
from harness.util.texts import many
from workloads.base import Mask

FURTHEST = 3  # records; a larger error is no off-by-one error


def on_both_sides(case: RunFacts) -> int:
    """Count cells with events both in files and in Kafka: only those show a correct transition."""
    if case.seam is None:
        return 0
    old = in_files(case.events, case.seam)
    return len(np.intersect1d(case.events.cell[old], case.events.cell[~old]))


def counted_twice(case: RunFacts, over: list[Difference]) -> str:
    found = _explained(case, Ledger((d.cell, d.surplus) for d in over))
    return f"exactly {found[0]}, counted twice at the seam" if found else ""


def passed_over(case: RunFacts, short: list[Difference]) -> str:
    found = _explained(case, Ledger((d.cell, -d.surplus) for d in short))
    return f"exactly {found[0]}, passed over at the seam" if found else ""


def wrong_events(case: RunFacts) -> Mask:
    """Select the events by which the seam explains surpluses and deficits; else all events of such cells."""
    rows = np.zeros(len(case.events), dtype=np.bool_)
    for sign in (1, -1):
        wrong = Ledger((d.cell, sign * d.surplus) for d in case.differences if sign * d.surplus > 0)
        found = _explained(case, wrong)
        rows |= found[1] if found else np.isin(case.events.cell, wrong.cells)
    return rows & ~case.dropped


def _explained(case: RunFacts, wrong: Ledger) -> tuple[str, Mask] | None:
    """Return the range of records that explains the error, in words and as rows; None: no range does."""
    for words, rows in _beside(case.events, case.seam) if case.seam and wrong else ():
        if case.only(case.fold(rows & ~case.dropped), COUNTS) == wrong:
            return words, rows
    return None


def _beside(events: LogEvents, seam: FileSeam) -> Iterator[tuple[str, Mask]]:
    """Yield the smallest ranges first."""
    for records in range(1, FURTHEST + 1):
        each = f"{'record' if records == 1 else many(records, 'record')} of each partition"
        yield f"the last {each} in files", between(events, _moved(seam.ends, -records), _moved(seam.ends))
        yield f"the first {each} behind the files", between(events, _moved(seam.ends), _moved(seam.ends, records))
    held, both = below(events, seam.ends), between(events, _moved(seam.begins), _moved(seam.ends))
    last_window = events.closes_ms == events.closes_ms[held].max(initial=0)
    yield "what both have of the window in which the files end", both & last_window
    yield "what both files and Kafka have", both
    go_on = np.isin(events.cell, events.cell[~held])
    yield "what the files held of cells that go on in Kafka", held & go_on


def _moved(ends: Ends, by: int = 0) -> Mapping[int, int]:
    return {partition: end + by for partition, end in enumerate(ends)}
