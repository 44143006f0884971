"""The section of a run with copies of its state: the cells in it after some batches against the expected ones, and the
cost of a copy.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial

from harness.evidence.observed import State
from harness.host.disk_space import size_in_words
from harness.judging.checks.case import RunFacts
from harness.judging.checks.state import expected_in, odds, unknown
from harness.util.texts import many
from reports.evidence import Evidence
from reports.figures import states as figure
from reports.figures.style import Picture, picture
from reports.page import Section, Table

COLUMNS = ("after batch", "s into the load", "cells", "events in them", "whole checkpoint", "copied in", "wrong")
TEXT = (
    "The checkpoint was copied after these batches, drawn by the seed, while the engine went on. The state was "
    "read from the copies after the engine had ended."
)


def section(evidence: Evidence) -> Section | None:
    if not evidence.states:
        return None
    table = Table(COLUMNS, tuple(_rows(evidence)))
    return Section("state", "Contents of the state", picture=_drawn(evidence), text=(TEXT,), tables=(table,))


def _rows(evidence: Evidence) -> Iterator[tuple[str, ...]]:
    moments = (evidence.store.values("state", name, int) for name in ("at_ms", "took_ms"))
    for state, at_ms, took_ms in zip(evidence.states, *moments, strict=True):
        yield (
            f"{state.kept.batch:,}",
            f"{(at_ms - evidence.epoch_ms) / 1000:.1f}",
            f"{len(state.held.counts):,}",
            f"{state.held.counts.total:,}",
            size_in_words(state.kept.size_bytes),
            f"{took_ms:,} ms",
            "" if unknown(evidence.case) else _in_words(wrong_in(evidence.case, state)),
        )


def _drawn(evidence: Evidence) -> Picture | None:
    """None if the expected content is unknown."""
    if unknown(evidence.case):
        return None
    at_s = [(at_ms - evidence.epoch_ms) / 1000 for at_ms in evidence.store.values("state", "at_ms", int)]
    states = tuple(map(partial(held, evidence.case), evidence.states, at_s))
    blows = tuple(
        figure.Blow(bisect_left(at_s, (fault.at_ms - evidence.epoch_ms) / 1000), fault.spec.text)
        for fault in evidence.faults
        if fault.landed
    )
    wrong = [f"{_in_words(each.wrong)} after batch {each.batch}" for each in states if each.wrong]
    alt = (
        f"after {many(len(states), 'batch', 'batches')}: cells by the log, in the state and in the results; "
        f"{', '.join(wrong) or 'all equal'}"
    )
    return picture("state", alt, lambda sheet: figure.draw(states, blows, sheet))


def held(case: RunFacts, state: State, at_s: float) -> figure.Held:
    """Count the expected, the held and the wrong cells of a state."""
    cells = {*state.held.counts}
    return figure.Held(
        state.kept.batch,
        at_s,
        expected=len(expected_in(case, state)),
        held=len(cells),
        shown=len(cells & {*case.observed.counts}),
        wrong=wrong_in(case, state),
    )


def wrong_in(case: RunFacts, state: State) -> Counter[str]:
    return Counter(odd.word for odd in odds(case, state))


def _in_words(wrong: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {word}" for word, count in wrong.items())
