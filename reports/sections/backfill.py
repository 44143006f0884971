"""The section of a run whose input a batch counted again: cells of both sides, and their costs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from harness.evidence.observed import Observed
from harness.judging.checks.case import RunFacts
from harness.model import Backfill
from harness.util.texts import many
from reports.evidence import Evidence
from reports.figures import backfill as figure
from reports.figures.style import picture
from reports.page import Section, Table

ID, TITLE = "backfill", "Batch and stream"
TEXT = (
    "A cell is equal, or the batch additionally counts exactly the events that the stream dropped as late, or "
    "the two differ otherwise. Both times run to the last event, from the first start of the batch job and from "
    "the last start of the stream."
)


def section(evidence: Evidence) -> Section | None:
    told, case = evidence.backfill, evidence.case
    if told is None:
        return None
    if case.backfilled is None:
        return Section(ID, TITLE, missing=(f"The batch left no results: {told.broke_off}.",))
    windows = tuple(windows_of(case, case.backfilled))
    costs = () if evidence.withheld else tuple(costs_of(told))
    counted = zip(
        (sum(cells) for cells in zip(*(each.cells for each in windows), strict=True)), figure.COLOURS, strict=True
    )
    alt = ", ".join(f"{many(count, 'cell')} {name}" for count, name in counted if count)
    rows = tuple((each.name, f"{each.stream:,.1f} s", f"{each.batch:,.1f} s", _share(each)) for each in costs)
    return Section(
        ID,
        TITLE,
        picture=picture(ID, f"by window: {alt}", lambda sheet: figure.draw(windows, costs, sheet)),
        text=(TEXT,),
        tables=(Table(("", "stream", "batch", "batch by stream"), rows),) if rows else (),
    )


def _share(cost: figure.Cost) -> str:
    return f"{cost.batch / cost.stream:.2f}"


def windows_of(case: RunFacts, seen: Observed) -> Iterator[figure.Window]:
    """Yield the windows in order, with the cells of either side."""
    stream, batch, late = case.observed.counts, seen.counts, case.fold(case.dropped)
    cells = np.array(sorted({*stream, *batch}), dtype=np.int64)
    begins_ms = case.oracle.begins_ms(cells)
    more = np.array([batch.count(cell) - stream.count(cell) for cell in cells.tolist()], dtype=np.int64)
    is_late = (more != 0) & (more == [late.count(cell) for cell in cells.tolist()])
    half = None if case.half_backfilled is None else np.isin(cells, case.half_backfilled.counts.cells)
    for moment_ms in np.unique(begins_ms).tolist():
        own = begins_ms == moment_ms
        counted = (own & (more == 0), own & is_late, own & (more != 0) & ~is_late)
        yield figure.Window(
            (moment_ms - case.epoch_ms) / 1000,
            tuple(int(rows.sum()) for rows in counted),
            int(more[own].sum()),
            None if half is None else int((half & own).sum()),
        )


def costs_of(told: Backfill) -> Iterator[figure.Cost]:
    """Yield the costs that are known for both sides."""
    pairs = (("CPU", told.stream_cpu_s, told.cpu_s), ("time", told.stream_took_ms / 1000, told.took_ms / 1000))
    return (figure.Cost(*each) for each in pairs if each[1])
