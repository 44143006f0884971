"""How the engine worked off what was waiting in Kafka when it started."""

from __future__ import annotations

import numpy as np

from harness.measuring import catching_up
from harness.measuring.timeline import Lines
from reports import catch_up
from reports.evidence import Evidence
from reports.figures import timeline as figure
from reports.figures.style import BLUE, GREEN, picture
from reports.page import Section, Table


def section(evidence: Evidence) -> Section | None:
    found = evidence.measurement.catch_up
    if found is None:
        return None
    load_s = evidence.spec.tape.load_ms // 1000
    to_do = catching_up.to_do(Lines(evidence), load_s)
    drawing = None
    if to_do is not None:
        panel = figure.Panel("due and not done, events", "events", (figure.Line("to do", to_do, BLUE),))
        moments = [(found.caught_up.value, "caught up"), (found.fresh.value, "fresh again")]
        bands = [
            figure.Band(s + found.started_s, s + found.started_s, name, colour=GREEN)
            for s, name in moments
            if s is not None
        ]
        seconds = np.arange(len(to_do), dtype=np.float64) + 0.5
        alt = f"events that were due and not done over {load_s} seconds of load"
        drawing = picture("backlog", alt, lambda sheet: figure.draw(seconds, (panel,), bands, sheet))
    text = f"{found.waiting:,} events of {found.oldest_s:.0f} s waited when the engine started. Times count from there."
    return Section(
        "backlog",
        "Backlog",
        picture=drawing,
        text=(text,),
        tables=(Table(("what", "value", "how"), tuple(catch_up.rows(found))),),
    )
