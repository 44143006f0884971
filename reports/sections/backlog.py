"""The section of a run with a backlog: how the engine worked it off."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from harness.measuring import backlog_catch_up
from harness.measuring.measurement import CatchUp, Reconfiguration
from harness.measuring.stats import Floats
from harness.measuring.timeline import Lines
from reports import catch_up
from reports.evidence import Evidence
from reports.figures import timeline as figure
from reports.figures.style import BLUE, GREEN, MUTED, Picture, picture
from reports.page import Section, Table
from reports.sections.timeline import bands_of


def section(evidence: Evidence) -> Section | None:
    found = evidence.measurement.catch_up
    if found is None:
        return None
    text = f"{found.waiting:,} events of {found.oldest_s:.0f} s waited when the engine started. Times count from there."
    parts = (catch_up.rows(found), *map(catch_up.rows_of, found.new_orders))
    return Section(
        "backlog",
        "Backlog",
        picture=_drawn(evidence, found),
        text=(text,),
        tables=tuple(Table(("what", "value", "how"), tuple(rows)) for rows in parts),
    )


def _drawn(evidence: Evidence, found: CatchUp) -> Picture | None:
    load_s = evidence.spec.tape.load_ms // 1000
    to_do = backlog_catch_up.to_do(Lines(evidence), load_s)
    if to_do is None:
        return None
    seconds, offered_per_s = np.arange(load_s, dtype=np.float64) + 0.5, evidence.measurement.offered_per_s
    without = (at_rate_before(each, found.started_s, offered_per_s, seconds) for each in found.new_orders)
    lines = (figure.Line("to do", to_do, BLUE), *filter(None, without))
    panel = figure.Panel("backlog, events due and not done", "events", lines)
    struck = [band for band in bands_of(evidence) if band.fault and band.from_s <= load_s]
    bands = (*_moments(found), *struck)
    alt = f"events that were due and not done over {load_s} seconds of load"
    return picture("backlog", alt, lambda sheet: figure.draw(seconds, (panel,), bands, sheet))


def _moments(found: CatchUp) -> Iterator[figure.Band]:
    for moment, name in ((found.caught_up, "caught up"), (found.fresh, "fresh again")):
        if moment.value is not None:
            at_s = moment.value + found.started_s
            yield figure.Band(at_s, at_s, name, colour=GREEN)


def at_rate_before(
    change: Reconfiguration, started_s: float, offered_per_s: float, seconds: Floats
) -> figure.Line | None:
    """Return the backlog that the engine would have had without the change of its job."""
    if change.before_per_s.value is None:
        return None
    since_s = seconds - started_s - change.at_s
    to_do = np.maximum(0.0, change.to_do + (offered_per_s - change.before_per_s.value) * since_s)
    return figure.Line("at the rate before", np.where(since_s < 0, np.nan, to_do), MUTED, dashed=True)
