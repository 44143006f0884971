"""The section of a run with bursts: latency and backlog over time, and the effects of each burst."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from harness.measuring import backlog_catch_up
from harness.measuring.bursting import WORDS, Checkpointing, checkpointing
from harness.measuring.measurement import Bursts
from harness.measuring.stats import Floats
from harness.measuring.timeline import Lines
from reports import bursting as words
from reports.evidence import Evidence
from reports.figures import timeline as figure
from reports.figures.style import BLUE, GREEN, MUTED, ORANGE, picture
from reports.page import Section, Table
from reports.sections.timeline import bands_of, column


def section(evidence: Evidence) -> Section | None:
    found = evidence.measurement.bursts
    if found is None:
        return None
    load_s = evidence.spec.tape.load_ms // 1000
    panels, seconds = tuple(panels_of(evidence, found, load_s)), np.arange(load_s, dtype=np.float64) + 0.5
    struck = [band for band in bands_of(evidence) if band.fault and band.from_s <= load_s]
    bands = (*shaded(found), *struck)
    alt = f"{', '.join(panel.title for panel in panels)} over {load_s} seconds of load, with bursts shaded"
    return Section(
        "bursts",
        "Bursts",
        picture=picture("bursts", alt, lambda sheet: figure.draw(seconds, panels, bands, sheet)) if panels else None,
        text=tuple(_text(found)),
        tables=(
            Table(("burst", "when", "rate", "area above the band", "back after", "how"), tuple(words.rows(found))),
            Table(("largest", *(WORDS[name][0] for name in words.names_of(found))), tuple(words.figures(found))),
        ),
    )


def panels_of(evidence: Evidence, found: Bursts, load_s: int) -> Iterator[figure.Panel]:
    """Yield the panels with known values."""
    p99_ms = column(evidence.timeline, "latency_p99_ms")[:load_s]
    if np.isfinite(p99_ms).any():
        lines = [figure.Line("p99", p99_ms, ORANGE)]
        if found.band_ms.value is not None:
            lines.append(figure.Line("band", np.full(load_s, found.band_ms.value), MUTED, dashed=True))
        yield figure.Panel("latency", "ms", tuple(lines))
    to_do = backlog_catch_up.to_do(Lines(evidence), load_s)
    if to_do is not None:
        yield figure.Panel("backlog, events due and not done", "events", (figure.Line("to do", to_do, BLUE),))
    if told := checkpointing(evidence):
        line = figure.Line("checkpoint", longest_by_second(told, load_s), GREEN)
        yield figure.Panel("the checkpoint under way took", "ms", (line,))


def longest_by_second(told: Checkpointing, load_s: int) -> Floats:
    """Return the longest checkpoint under way in each second; NaN if there was none."""
    own = [told.took_ms[told.under_way(second, second + 1)] for second in range(load_s)]
    return np.array([took_ms.max() if len(took_ms) else np.nan for took_ms in own])


def shaded(found: Bursts) -> Iterator[figure.Band]:
    for number, burst in enumerate(found.bursts, 1):
        own = f"burst {number}: " if len(found.bursts) > 1 else "burst: "
        yield figure.Band(burst.from_s, burst.until_s, f"{own}{burst.rate_per_s:,.0f}/s")


def _text(found: Bursts) -> Iterator[str]:
    if found.band_ms.value is None:
        yield f"There is no band of steady load: {found.band_ms.note}."
    else:
        yield f"The band of steady load ends at {found.band_ms.value:,.0f} ms: {found.band_ms.note}."
    if why := list(words.reasons(found)):
        yield f"Not known: {'; '.join(why)}."
