"""A job that came to answer another question in the middle of a run: what is right then, and what else may have come.

Pure: columns in, columns out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from harness.judging.asked import Means
from harness.judging.lateness import Countable
from harness.judging.ledger import Ledger
from harness.judging.readings import LogEvents
from workloads.base import Mask

Ends = tuple[int, ...]  # by partition the first offset that is not in it any more


@dataclass(frozen=True)
class Changed:
    """What the cells would hold by other rules than the declared one, so that each wrong way has its name."""

    means: Means
    restored: Ends  # the seam; (): nobody knows it
    both_sides: int  # so many cells of the old question have events on both sides of the seam
    collisions: frozenset[int]  # cells of the store in which windows of two lengths lie
    others: Mapping[str, Ledger]  # by the word for it
    written: Mapping[int, int]  # cells as the old job may have left them, by a batch that it did not commit


def by_rule(means: Means, old: Countable, new: Countable, restored: Ends) -> Countable:
    """The events that count, each in the cells of its question."""
    if means is Means.FRESH:
        return new
    before, behind = old.only(below(old.events, restored)), new.only(~below(new.events, restored))
    if means is Means.ANEW:
        before = before.only(~np.isin(before.events.cell, behind.events.cell[~behind.dropped]))
    return _together(before, behind)


def below(events: LogEvents, ends: Ends) -> Mask:
    result = np.zeros(len(events), dtype=np.bool_)
    for partition, end in enumerate(ends):
        result |= (events.partition == partition) & (events.offset < end)
    return result


def on_both_sides(old: Countable, restored: Ends) -> int:
    before = below(old.events, restored)
    return len(np.intersect1d(old.events.cell[before], old.events.cell[~before]))


def collisions(old: Countable, new: Countable, restored: Ends) -> frozenset[int]:
    """Cells of both questions whose windows end at different times: the store has one place for them."""
    before, behind = old.events.only(below(old.events, restored)), new.events.only(~below(new.events, restored))
    ends = dict(zip(before.cell.tolist(), before.closes_ms.tolist(), strict=True))
    pairs = zip(behind.cell.tolist(), behind.closes_ms.tolist(), strict=True)
    return frozenset(cell for cell, closes_ms in pairs if ends.get(cell, closes_ms) != closes_ms)


def left_written(old: Countable, restored: Ends, written: Ends) -> Mapping[int, int]:
    """What cells held of the old question when its last batch was written, for those that this one touched. Nothing
    restored: for all."""
    events = old.events.only(~old.dropped)
    before = below(events, written)
    touched = before & ~below(events, restored)
    cells, counts = np.unique(events.cell[before], return_counts=True)
    here = np.isin(cells, events.cell[touched])
    return dict(zip(cells[here].tolist(), counts[here].tolist(), strict=True))


def _together(one: Countable, other: Countable) -> Countable:
    """In the order of partitions and offsets."""
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
