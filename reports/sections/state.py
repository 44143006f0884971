"""From a run whose state was kept to what lay in it after some batches, what it took to keep it, and how it grew."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from harness.measuring.timeline import Lines
from harness.room import size_in_words
from reports.evidence import Evidence
from reports.figures import timeline as figure
from reports.figures.style import BLUE, Picture, picture
from reports.page import Section, Table
from reports.sections.timeline import bands_of

COLUMNS = ("after batch", "s into the load", "cells", "events in them", "whole checkpoint", "copied in")
TEXT = (
    "The checkpoint was copied after these batches, drawn by the seed, while the engine went on. What lay in the state "
    "was read from the copies, when it had ended."
)


def section(evidence: Evidence) -> Section | None:
    if not evidence.states:
        return None
    table = Table(COLUMNS, tuple(_rows(evidence)))
    return Section("state", "What lay in the state", picture=_growth(evidence), text=(TEXT,), tables=(table,))


def _rows(evidence: Evidence) -> Iterator[tuple[str, ...]]:
    moments = (evidence.store.told("state", name, int) for name in ("at_ms", "took_ms"))
    for state, at_ms, took_ms in zip(evidence.states, *moments, strict=True):
        yield (
            f"{state.kept.batch:,}",
            f"{(at_ms - evidence.epoch_ms) / 1000:.1f}",
            f"{len(state.held.counts):,}",
            f"{state.held.counts.total:,}",
            size_in_words(state.kept.size_bytes),
            f"{took_ms:,} ms",
        )


def _growth(evidence: Evidence) -> Picture | None:
    """Of an engine that tells how large its state is, or whose checkpoint is a folder here."""
    lines = Lines(evidence)
    both = {"state, bytes": lines.told_state_bytes(), "checkpoint, bytes": lines.checkpoint_bytes()}
    known = {title: values for title, values in both.items() if np.isfinite(values).any()}
    panels = [figure.Panel(title, "bytes", (figure.Line(title, values, BLUE),)) for title, values in known.items()]
    seconds = np.arange(lines.seconds, dtype=np.float64) + 0.5
    bands = [band for band in bands_of(evidence) if band.fault and -1 <= band.from_s <= lines.seconds]
    alt = f"{' and '.join(known)} over {lines.seconds} seconds"
    return picture("state", alt, lambda sheet: figure.draw(seconds, panels, bands, sheet)) if panels else None
