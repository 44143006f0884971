"""The expectation for a job that starts to answer another question during a run, and likely wrong results.

Pure: columns in, columns out.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from harness.evidence.changed_query import CutoverRule
from harness.evidence.ledger import Ledger
from harness.evidence.observed import LogEvents
from harness.judging.lateness import Countable, Ends, below
from workloads.base import Ints


@dataclass(frozen=True)
class Changed:
    """The values that cells would hold by rules other than the declared one, to name a wrong result."""

    means: CutoverRule
    restored: Ends  # the seam; (): unknown
    both_sides: int  # how many cells of the old question have events on both sides of the seam
    collisions: frozenset[int]  # cells of the store that windows of two lengths share
    others: Mapping[str, Ledger]  # by the word for the wrong rule
    left: Mapping[int, Collection[int]]  # cells as the old job may have left them -> their possible values


def by_rule(means: CutoverRule, old: Countable, new: Countable, restored: Ends) -> Countable:
    """Return the events that count by a rule, each in the cells of its question."""
    if means is CutoverRule.FRESH:
        return new
    before, behind = old.only(below(old.events, restored)), new.only(~below(new.events, restored))
    if means is CutoverRule.ANEW:
        before = before.only(~np.isin(before.events.cell, behind.events.cell[~behind.dropped]))
    return _together(before, behind)


def on_both_sides(old: Countable, restored: Ends) -> int:
    before = below(old.events, restored)
    return len(np.intersect1d(old.events.cell[before], old.events.cell[~before]))


def collisions(old: Countable, new: Countable, restored: Ends) -> frozenset[int]:
    """Return cells that both questions use for windows with different ends: the store has one value for them."""
    before, behind = old.events.only(below(old.events, restored)), new.events.only(~below(new.events, restored))
    ends = dict(zip(before.cell.tolist(), before.closes_ms.tolist(), strict=True))
    pairs = zip(behind.cell.tolist(), behind.closes_ms.tolist(), strict=True)
    return frozenset(cell for cell, closes_ms in pairs if ends.get(cell, closes_ms) != closes_ms)


def left_by(means: CutoverRule, old: Countable, restored: Ends, written: Ends) -> Mapping[int, Collection[int]]:
    """Return the possible values of cells that the old job wrote and no later job has written since.

    With FRESH these are all its values; otherwise only those that it wrote and did not commit. If it is unknown how far
    it wrote, a cell may hold any of its counts.
    """
    events = old.events.only(~old.dropped)
    committed = _counts(events.cell[below(events, restored)])
    if not written:
        first = {} if means is CutoverRule.FRESH else committed
        return {cell: range(first.get(cell, 0) + 1, count + 1) for cell, count in _counts(events.cell).items()}
    all_of_it = _counts(events.cell[below(events, written)])
    if means is CutoverRule.FRESH:
        return {cell: frozenset({count, committed.get(cell, count)}) for cell, count in all_of_it.items()}
    return {cell: frozenset({count}) for cell, count in all_of_it.items() if count != committed.get(cell)}


def _counts(cells: Ints) -> dict[int, int]:
    names, counts = np.unique(cells, return_counts=True)
    return dict(zip(names.tolist(), counts.tolist(), strict=True))


def _together(one: Countable, other: Countable) -> Countable:
    """Merge events in order of partition and offset."""
    events = _joined(one.events, other.events)
    order = np.lexsort((events.offset, events.partition))
    masks = (
        np.concatenate((getattr(one, name), getattr(other, name)))[order]
        for name in ("permitted", "dropped", "batch", "counted_before")
    )
    permitted, dropped, batch, counted_before = masks
    return Countable(events.only(order), permitted, dropped, batch, one.exact and other.exact, counted_before)


def _joined(one: LogEvents, other: LogEvents) -> LogEvents:
    names = [each.name for each in fields(LogEvents) if each.name != "columns"]
    columns: dict[str, Any] = {name: np.concatenate((getattr(one, name), getattr(other, name))) for name in names}
    return LogEvents(**columns)
