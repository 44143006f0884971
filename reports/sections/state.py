"""From a run whose state was kept to what lay in it after each of its batches, and what it took to keep it."""

from __future__ import annotations

from harness.room import size_in_words
from reports.evidence import Evidence
from reports.page import Section, Table

COLUMNS = ("after batch", "s into the load", "cells", "events in them", "whole checkpoint", "copied in")


def section(evidence: Evidence) -> Section | None:
    if not evidence.states:
        return None
    store = evidence.store
    moments = zip(*(store.told("state", name, int) for name in ("at_ms", "took_ms")), strict=True)
    rows = tuple(
        (
            str(state.kept.batch),
            f"{(at_ms - evidence.epoch_ms) / 1000:.1f}",
            f"{len(state.held.counts):,}",
            f"{state.held.counts.total:,}",
            size_in_words(state.kept.size_bytes),
            f"{took_ms:,} ms",
        )
        for state, (at_ms, took_ms) in zip(evidence.states, moments, strict=True)
    )
    text = (
        "The checkpoint was copied after these batches, drawn by the seed, while the engine went on. What lay in the "
        "state was read from the copies, when it had ended."
    )
    return Section("state", "What lay in the state", text=(text,), tables=(Table(COLUMNS, rows),))
