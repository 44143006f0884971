"""The section of a run with a long window: its state and its checkpoints before and after a kill, and the same in a
sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from harness.host.disk_space import size_in_words
from harness.judging.progress_curve import last_known
from harness.measuring.measurement import Commit, StatePart, WindowState
from harness.util.texts import many
from reports.evidence import Evidence
from reports.figures import timeline as figure
from reports.figures.style import BLUE, ORANGE, Picture, picture
from reports.page import Section, Table
from reports.sections.timeline import bands_of

COLUMNS = ("", "state", "rows in it", "checkpoints", "one took", "one wrote")
TEXT = (
    "The sizes are those of the last checkpoint before the fault, and of the first one after it. What a checkpoint "
    "took and wrote is the median. All figures are as the engine reports them: a time that tasks report is summed."
)
PANELS: tuple[tuple[str, str, Callable[[Commit], int | None]], ...] = (
    ("size of the state, bytes", "bytes", lambda each: each.state_bytes),
    ("rows in the state", "rows", lambda each: each.cells or None),
    ("a checkpoint took", "ms", lambda each: each.took_ms),
    ("a checkpoint wrote, bytes", "bytes", lambda each: each.written_bytes),
)


def section(evidence: Evidence) -> Section | None:
    found = evidence.measurement.window_state
    if found is None:
        return None
    table = Table(COLUMNS, tuple(map(_row, found.parts)))
    return Section(
        "window-state", "State of the window", picture=_drawn(found, evidence), text=(TEXT,), tables=(table,)
    )


def _drawn(found: WindowState, evidence: Evidence) -> Picture | None:
    seconds = np.arange(int(found.commits[-1].at_s) + 1, dtype=np.float64) + 1.0
    panels = tuple(panels_of(found, seconds))
    if not panels:
        return None
    bands = tuple(band for band in bands_of(evidence) if 0 <= band.from_s <= seconds[-1])
    alt = f"{', '.join(panel.title for panel in panels)} over {len(seconds)} seconds"
    return picture("window-state", alt, lambda sheet: figure.draw(seconds, panels, bands, sheet))


def panels_of(found: WindowState, seconds: NDArray[np.float64]) -> Iterator[figure.Panel]:
    """Yield the panels with known values: the newest one at the end of each second."""
    for title, unit, value_of in PANELS:
        known = [(each.at_s, value) for each in found.commits if (value := value_of(each)) is not None]
        if known:
            at_s, values = (np.array(column, dtype=np.float64) for column in zip(*known, strict=True))
            colour = ORANGE if unit == "ms" else BLUE
            yield figure.Panel(title, unit, (figure.Line(title, last_known(at_s, values, seconds), colour),))


def _row(part: StatePart) -> tuple[str, ...]:
    return (part.name, *_sizes(part), f"{part.commits:,}", *_costs(part))


def _sizes(part: StatePart) -> tuple[str, str]:
    return _size(part.state_bytes), "-" if part.cells is None else f"{part.cells:,}"


def _costs(part: StatePart) -> tuple[str, str]:
    return "-" if part.took_ms is None else f"{part.took_ms:,} ms", _size(part.written_bytes)


def _size(size: int | None) -> str:
    return "-" if size is None else size_in_words(size)


def in_words(found: WindowState) -> str:
    """Summarize in a sentence the state of each part of the load, and what a checkpoint cost."""
    return "; ".join(map(_clause, found.parts))


def _clause(part: StatePart) -> str:
    if not part.commits:
        return f"no checkpoint {part.name}"
    said = [] if part.state_bytes is None else [_size(part.state_bytes)]
    said += [] if part.cells is None else [many(part.cells, "row")]
    took, wrote = _costs(part)
    cost = ([f"took {took}"] if part.took_ms is not None else []) + (
        [f"wrote {wrote}"] if part.written_bytes is not None else []
    )
    return f"{' in '.join(said)} {part.name}" + (f", where a checkpoint {' and '.join(cost)}" if cost else "")
