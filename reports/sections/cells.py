"""The section with the strip of all cells, made from the judged case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import chain

import numpy as np

from harness.evidence.ledger import Difference, Ledger
from harness.judging.checks.case import RunFacts
from harness.model import AD_IMPRESSIONS
from harness.rundir.missing_evidence import MissingEvidence
from harness.util.texts import many
from reports.evidence import Evidence
from reports.figures import cells
from reports.figures.style import picture
from reports.page import Section
from workloads.base import Kind

COLUMNS = ("key", "window_s", "cell", "expected_least", "expected_most", "seen", "stands")
MOST_ROWS = 200_000  # 20 MB


def section(evidence: Evidence) -> Section:
    case = evidence.case
    if case.not_read:
        raise MissingEvidence(case.not_read)
    grid = grid_of(case)
    counted = {kind: sum(mark.kind == kind for mark in grid.marks) for kind in cells.KINDS}
    told = ", ".join(f"{count:,} {kind}" for kind, count in counted.items() if count) or "all of them right"
    alt = f"{many(int(grid.present.sum()), 'cell')} of {grid.columns_are} and window: {told}"
    strays = [stray for stray in case.observed.strays if stray.kind in ("campaign", "orphan")]
    text = [
        f"A cell is one {grid.columns_are.split()[0]} in one window; what the engine says of it is held against the "
        "events in the Kafka log. The single cells apart from the rest hold the harness's own opening and closing "
        "events."
    ]
    if strays:
        text.append(f"Not in the strip: {many(len(strays), 'count')} of campaigns that do not exist.")
    return Section(
        "cells", "Every cell", picture=picture("cells", alt, lambda sheet: cells.draw(grid, sheet)), text=tuple(text)
    )


def grid_of(case: RunFacts) -> cells.Grid:
    """Return the grid. Rows are the windows with expected or seen events, columns are all keys, value by value."""
    cells_of_run = set(case.expectation.may) | set(case.observed.counts)
    codes = case.oracle.codes
    windows = sorted({codes.field(cell) for cell in cells_of_run.union(_dropped(case))})
    row = {window: number for number, window in enumerate(windows)}
    values = len(case.oracle.values)
    present = np.zeros((len(windows), case.oracle.groups * values), dtype=np.bool_)
    for cell in cells_of_run:
        present[row[codes.field(cell)], codes.key(cell)] = True
    return cells.Grid(
        present=present,
        windows_s=[(window - case.epoch_ms) / 1000 for window in windows],
        marks=tuple(_marks(case, row)),
        probes_from=case.oracle.probed_from if values == 1 else None,
        columns_are=_columns_are(case),
    )


def _columns_are(case: RunFacts) -> str:
    if case.spec.workload == AD_IMPRESSIONS:
        return "campaign"
    names = [value.name for value in case.oracle.values]
    return "key" if len(names) == 1 else f"key (first all of {', then '.join(names)})"


def kind_of(difference: Difference, drained: bool) -> str:
    """Return the checks' word for a difference."""
    if difference.may == 0:
        return "phantom"
    if difference.surplus > 0:
        return "duplicated"
    return "lost" if drained else "unseen"


def _in_words(kind: str) -> str:
    """A wrong sum or maximum does not prove that an event was lost or counted twice."""
    return "wrong value" if kind in ("lost", "duplicated") else kind


def rows_of(case: RunFacts) -> Iterator[tuple[object, ...]]:
    """Yield each cell as a row of COLUMNS, by window and key."""
    if case.not_read:
        raise MissingEvidence(case.not_read)
    codes, seen, kinds = case.oracle.codes, case.observed.counts, _kinds(case)
    must, may = case.allowed.must, case.allowed.may
    found = sorted({*may, *seen}, key=lambda cell: (codes.field(cell), codes.key(cell)))
    if len(found) > MOST_ROWS:
        raise MissingEvidence(f"{len(found):,} cells are too many for a table of {MOST_ROWS:,} rows")
    begins_ms = case.oracle.begins_ms(np.array(found, dtype=np.int64)).tolist()
    for cell, begin_ms in zip(found, begins_ms, strict=True):
        window_s = (begin_ms - case.epoch_ms) / 1000 if begin_ms else ""
        low, high = sorted((must.count(cell), may.count(cell)))
        stands = kinds.get(cell, "right")
        yield codes.key(cell), window_s, case.cell_name(cell), low, high, seen.count(cell), stands


def _kinds(case: RunFacts) -> dict[int, str]:
    """Return what is wrong with each cell outside of its expectation."""
    wrong = {difference.cell: difference for difference in case.differences}
    others = case.only(Ledger(dict.fromkeys(wrong, 1)), {Kind.SUM, Kind.MONOTONE, Kind.RANKED})
    lost = {difference.cell for difference in case.lacking_events}
    drained = case.engine.state == "drained"
    kinds = {cell: kind_of(difference, drained) for cell, difference in wrong.items()}
    return {cell: _in_words(kind) if cell in others and cell not in lost else kind for cell, kind in kinds.items()}


def _marks(case: RunFacts, row: Mapping[int, int]) -> Iterator[cells.Mark]:
    codes, kinds = case.oracle.codes, _kinds(case)
    wrong = {difference.cell: difference for difference in case.differences}
    for number, (cell, difference) in enumerate(wrong.items()):
        expected = (
            f"{difference.must:,}"
            if difference.must == difference.may
            else f"{difference.must:,} to {difference.may:,}"
        )
        yield cells.Mark(
            codes.key(cell),
            row[codes.field(cell)],
            kinds[cell],
            f"{difference.surplus:+,} in {_columns_are(case).split()[0]} {codes.key(cell)}",
            f"{case.cell_name(cell)}: expected {expected}, seen {difference.seen:,}"
            if number < cells.NAMED_MAX
            else "",
        )
    for number, (cell, count) in enumerate(_dropped(case).items()):
        if cell not in wrong:
            named = number + len(wrong) < cells.NAMED_MAX
            text = f"{case.cell_name(cell)}: {many(count, 'event')} dropped as late, each explained" if named else ""
            yield cells.Mark(codes.key(cell), row[codes.field(cell)], "late-dropped", f"{count:,} late", text)


def _dropped(case: RunFacts) -> Mapping[int, int]:
    return Counter(chain.from_iterable(part.events.cell[part.dropped].tolist() for part in case.judged))
