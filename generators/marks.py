"""Events of the harness itself, each one of its own: a job that drops equal records must not drop any of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from harness.model import INDEX_BITS, MARK_SERVER, Mark, MarkKind
from workloads.base import Codec, Columns, Ints, Mask, Oracle, Totals

_WHO = 100  # users, and pages


def mark(number: int, campaign: int, partition: int, time_ms: int, kind: MarkKind) -> Mark:
    """The mark with this number of the run: no two of 10,000 in a row have the same user on the same page."""
    page, user = divmod(number, _WHO)
    return Mark(MARK_SERVER << INDEX_BITS | number, campaign, partition, time_ms, kind, user, page % _WHO)


def is_opening(number: Ints, partitions: int) -> Mask:
    """Of marks by their numbers. Opening and closing ones take turns, as many at a time as there are partitions."""
    return np.asarray(number % (2 * partitions) < partitions)


def as_events(codec: Codec, marks: Sequence[Mark]) -> Columns:
    """Marks as events of the log, a row each: `event_id`, `event_time_ms` and their content."""
    contents = [codec.mark(each) for each in marks]
    columns = {name: [content[name] for content in contents] for name in codec.content}
    columns |= {"event_id": [each.id for each in marks], "event_time_ms": [each.event_time_ms for each in marks]}
    return {name: np.array(column, dtype=np.int64) for name, column in columns.items()}


def totals_of(oracle: Oracle, codec: Codec, marks: Sequence[Mark]) -> Totals:
    """What they make of their cells, if nothing else lies there."""
    places = oracle.places(as_events(codec, marks))
    return oracle.fold(places.cell, places.columns)


def closes_ms_of(oracle: Oracle, codec: Codec, marks: Sequence[Mark]) -> int:
    """With the watermark that far, nothing more can come into their cells."""
    return int(oracle.places(as_events(codec, marks)).closes_ms.max())
