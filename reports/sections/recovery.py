"""The section of recoveries: what was reached when after each fault, and the backlog beside the baseline run's."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from harness.measuring import recovery
from harness.measuring.measure import not_right
from harness.measuring.measurement import Quantity, Recovery
from harness.measuring.recovery import WORDS
from harness.measuring.watched import Watched, twin_of, watched
from reports.evidence import Evidence
from reports.figures import timeline as figure
from reports.figures.style import BLUE, INK, MUTED, ORANGE, RED, picture
from reports.page import Section, Table
from reports.sections.timeline import bands_of


def section(evidence: Evidence) -> Section | None:
    """Return the section, or None if no fault took effect. It is shown even if the load check failed: see
    harness/measuring/measure.py.
    """
    if not any(fault.landed for fault in evidence.faults):
        return None
    found = evidence.recovery
    run, twin = watched(evidence), twin_of(evidence.store)
    panels = tuple(panels_of(run, twin, speed=not not_right(evidence.verdict)))
    length = len(panels[0].lines[0].values) if panels else 0
    seconds = np.arange(length, dtype=np.float64) + 0.5
    bands = tuple(band for band in bands_of(evidence) if band.fault and band.from_s <= length)
    alt = f"{', '.join(panel.title for panel in panels)} over {length} seconds"
    return Section(
        "recovery",
        "Recovery",
        picture=picture("recovery", alt, lambda sheet: figure.draw(seconds, panels, bands, sheet)) if panels else None,
        text=tuple(_text(found, twin)),
        tables=tuple(Table(("what", "value", "over baseline", "how"), tuple(rows(each)), each.fault) for each in found),
    )


def panels_of(run: Watched, twin: Watched | None, *, speed: bool) -> Iterator[figure.Panel]:
    """Yield the panels. Those that reveal the engine's speed are made only with `speed`."""
    length = int(np.ceil(run.end_s if speed else min(run.end_s, run.load_s)))
    if speed and run.backlog is not None:
        lines = [figure.Line("this run", _cut(run.backlog, length), BLUE)]
        if twin is not None and twin.backlog is not None:
            lines.append(
                figure.Line("the baseline run without a fault", _cut(twin.backlog, length), MUTED, dashed=True)
            )
        yield figure.Panel("backlog, events due and not done", "events", tuple(lines))
    if speed:
        silent = [("results", run.changes_s, ORANGE), ("progress", run.progress_s, INK)]
        lines = [
            figure.Line(name, _cut(recovery.silent_s(run, moments_s), length), colour, dashed=name == "progress")
            for name, moments_s, colour in silent
            if len(moments_s)
        ]
        if lines:
            yield figure.Panel("seconds since the last sign of", "s", tuple(lines))
    if run.wrong is not None and len(run.wrong.cell):
        wrong = run.wrong.wrong_at(np.arange(1, length + 1, dtype=np.float64)).astype(np.float64)
        yield figure.Panel("cells with a wrong count", "cells", (figure.Line("wrong", wrong, RED),))


def rows(found: Recovery) -> Iterator[tuple[str, str, str, str]]:
    for name, quantity in found.quantities.items():
        label, unit = WORDS[name]
        over = "" if quantity.over_twin is None else f"{quantity.over_twin:+,.{_digits(unit)}f} {unit}"
        yield label, told(quantity, unit), over, quantity.note


def told(quantity: Quantity, unit: str) -> str:
    return quantity.text(in_unit(unit))


def in_unit(unit: str) -> Callable[[float], str]:
    """Return the function that writes a value in this unit."""
    return lambda value: f"{value:,.{_digits(unit)}f} {unit}"


def _digits(unit: str) -> int:
    return 1 if unit == "s" else 0


def _text(found: tuple[Recovery, ...], twin: Watched | None) -> Iterator[str]:
    struck = ", ".join(f"{each.fault} at {each.struck_s:.1f} s" for each in found)
    yield f"Struck: {struck}. Times count from there, until the next fault or the end of the run."
    if twin is None:
        yield "There is no baseline run (same seed, no fault) to compare with."


def _cut(values: NDArray[np.float64], length: int) -> NDArray[np.float64]:
    """Cut to so many seconds, or fill up with NaN."""
    return np.append(values[:length], np.full(max(0, length - len(values)), np.nan))
