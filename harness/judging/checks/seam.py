"""What went wrong where files end and Kafka begins, in words; "" where the seam explains nothing.

Each candidate is a stretch of records beside the seam: what a reader counts twice, or not at all, who begins there too
early or too late.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from harness.judging.checks.case import Case
from harness.judging.checks.kinds import COUNTS
from harness.judging.lateness import Ends, between
from harness.judging.ledger import Difference, Ledger
from harness.model import FileSeam
from harness.texts import many

FURTHEST = 3  # records; who is wrong by more is not wrong by counting

Stretch = tuple[str, Mapping[int, int], Mapping[int, int]]


def counted_twice(case: Case, over: list[Difference]) -> str:
    return _explained(case, Ledger((d.cell, d.surplus) for d in over), "counted twice")


def passed_over(case: Case, short: list[Difference]) -> str:
    return _explained(case, Ledger((d.cell, -d.surplus) for d in short), "passed over")


def _explained(case: Case, wrong: Ledger, what: str) -> str:
    for words, begins, ends in _beside(case.seam) if case.seam else ():
        rows = between(case.events, begins, ends) & ~case.dropped
        if case.only(case.fold(rows), COUNTS) == wrong:
            return f"exactly {words}, {what} at the seam"
    return ""


def _beside(seam: FileSeam) -> Iterator[Stretch]:
    """The smallest first."""
    for records in range(1, FURTHEST + 1):
        each = f"{'record' if records == 1 else many(records, 'record')} of each partition"
        yield f"the last {each} in files", _moved(seam.ends, -records), _moved(seam.ends)
        yield f"the first {each} behind the files", _moved(seam.ends), _moved(seam.ends, records)
    yield "what both files and Kafka have", _moved(seam.begins), _moved(seam.ends)


def _moved(ends: Ends, by: int = 0) -> Mapping[int, int]:
    return {partition: end + by for partition, end in enumerate(ends)}
