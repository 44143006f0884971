"""The section with the results over time around the seam: when the output of files came, and when that of Kafka
followed.
"""

from __future__ import annotations

import numpy as np

from harness.evidence.observed import Watched
from harness.judging.checks.case import Ints, RunFacts
from harness.judging.lateness import in_files
from harness.measuring.stats import Floats
from harness.model import FileSeam
from reports.evidence import Evidence
from reports.figures import timeline as figure
from reports.figures.style import BLUE, GREEN, ORANGE, picture
from reports.page import Section
from reports.sections.timeline import bands_of

EVERY_S = 0.2
COLOURS = {"files alone": BLUE, "both": ORANGE, "Kafka alone": GREEN}
TEXT = (
    "How many events the results held, by poll, for cells with events only in files, only in Kafka, and in both. "
    "The engine was started at load start."
)


def section(evidence: Evidence) -> Section | None:
    found, seen = evidence.seam, evidence.case.watched
    if found is None or seen is None or not len(seen.at_us):
        return None
    end_s = (int(seen.at_us.max()) / 1000 - evidence.epoch_ms) / 1000
    seconds = np.arange(0.0, end_s + EVERY_S, EVERY_S)
    lines = tuple(
        figure.Line(name, held(seen, cells, evidence.epoch_ms, seconds), COLOURS[name])
        for name, cells in cells_of(evidence.case, found).items()
    )
    panel = figure.Panel("events in the results, by where their cell has them", "events", lines)
    bands = [band for band in bands_of(evidence) if 0 <= band.from_s <= end_s]
    alt = f"events in the results over {end_s:.0f} seconds: cells of {', of '.join(line.label for line in lines)}"
    return Section(
        "seam-output",
        "From files to Kafka",
        picture=picture("seam-output", alt, lambda sheet: figure.draw(seconds, (panel,), bands, sheet)),
        text=(TEXT,),
    )


def cells_of(case: RunFacts, found: FileSeam) -> dict[str, Ints]:
    """Group the cells by where their events are stored."""
    old = in_files(case.events, found)
    files, kafka = np.unique(case.events.cell[old]), np.unique(case.events.cell[~old])
    return {
        "files alone": np.setdiff1d(files, kafka),
        "both": np.intersect1d(files, kafka),
        "Kafka alone": np.setdiff1d(kafka, files),
    }


def held(seen: Watched, cells: Ints, epoch_ms: int, seconds: Floats) -> Floats:
    """Return how many events all these cells together held at each moment, by the polls."""
    own = np.isin(seen.cell, cells)
    cell, at_us, count = seen.cell[own], seen.at_us[own], seen.count[own]
    order = np.argsort(cell, kind="stable")  # the polls of one cell are in order
    grown = np.diff(count[order], prepend=0)
    first = np.diff(cell[order], prepend=-1) != 0
    grown[first] = count[order][first]
    at_s = (at_us[order] / 1000 - epoch_ms) / 1000
    by_time = np.argsort(at_s, kind="stable")
    total = np.concatenate([[0], np.cumsum(grown[by_time])])
    return np.asarray(total[np.searchsorted(at_s[by_time], seconds, side="right")], dtype=np.float64)
