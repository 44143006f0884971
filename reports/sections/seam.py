"""The section of a run whose older events are in files: what counted from files and from Kafka in each partition."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from harness.evidence.observed import NO_BATCH
from harness.judging.checks.case import RunFacts
from harness.judging.checks.seam import on_both_sides, wrong_events
from harness.judging.lateness import in_files
from harness.model import FileSeam
from harness.util.texts import many
from reports.evidence import Evidence
from reports.figures import seam as figure
from reports.figures.style import picture
from reports.page import Section
from workloads.base import Mask

TEXT = (
    "The upper track of a partition shows the records in files, the lower one the records in Kafka. Strong "
    "colours mark the records that are counted from there. A number is the batch that read them."
)


def section(evidence: Evidence) -> Section | None:
    found = evidence.seam
    if found is None:
        return None
    case = evidence.case
    rows = tuple(rows_of(case, found))
    old = int(in_files(case.events, found).sum())
    marked = {kind: sum(len(row.marks[kind]) for row in rows) for kind in figure.MARKS}
    told = ", ".join(f"{many(count, 'event')} {kind}" for kind, count in marked.items() if count) or "none marked"
    return Section(
        "seam",
        "Files and Kafka",
        picture=picture(
            "seam",
            f"{many(len(rows), 'partition')} around the seam of files and Kafka, and the batches that read them; "
            f"{told}",
            lambda sheet: figure.draw(rows, sheet),
        ),
        text=(
            f"{many(old, 'event')} to be counted came from files, {len(case.events) - old:,} from Kafka, and "
            f"{many(on_both_sides(case), 'cell')} have events of both.",
            TEXT,
        ),
    )


def rows_of(case: RunFacts, found: FileSeam) -> Iterator[figure.Row]:
    """Yield a row for each partition. Its seam is the first record that is in no file."""
    old, wrong = in_files(case.events, found), wrong_events(case)
    for partition, (end, begin) in enumerate(zip(found.ends, found.begins, strict=True)):
        own = case.events.partition == partition
        last = int(case.events.offset[own].max(initial=end - 1)) + 1
        marked = {"dropped as late": own & case.dropped, "wrong": own & wrong}
        yield figure.Row(
            lies={figure.FILES: (-end, 0), figure.KAFKA: (begin - end, last - end)},
            taken=(*_taken(case, own & old, figure.FILES, end), *_taken(case, own & ~old, figure.KAFKA, end)),
            marks={kind: (case.events.offset[rows] - end).tolist() for kind, rows in marked.items()},
        )


def _taken(case: RunFacts, rows: Mask, side: str, end: int) -> Iterator[figure.Stretch]:
    again = {each.batch for each in case.batch_log.batches if each.replayed} if case.batch_log else set()
    batches, which = np.unique(case.batch[rows], return_inverse=True)
    places = case.events.offset[rows].astype(np.int64) - end
    first, last = np.full(len(batches), places.max(initial=0)), np.full(len(batches), places.min(initial=0))
    np.minimum.at(first, which, places)
    np.maximum.at(last, which, places)
    for batch, begin, until in zip(batches.tolist(), first.tolist(), last.tolist(), strict=True):
        number = "" if batch == NO_BATCH else str(batch)
        yield figure.Stretch(side, begin, until + 1, number, batch in again)
