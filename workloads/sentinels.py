"""Sentinel records: events of the harness itself, all different, because a job that drops equal records must not drop
any.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.model import INDEX_BITS, MARK_SERVER, Sentinel, SentinelKind
from harness.util.texts import many
from workloads.base import Codec, Columns, Ints, Mask, Oracle, Totals

TRIED = 1024  # events that a codec tries, to find some that belong to a cell ...
LARGEST_GROUP = 64  # ... and the most that may be needed
SOME_DAY_MS = 1_767_225_600_000
_WHO = 100  # number of users, and of pages


def mark(
    number: int,
    campaign: int,
    partition: int,
    time_ms: int,
    kind: SentinelKind,
    *,
    group: int | None = None,
    part: int = 0,
) -> Sentinel:
    """Return the sentinel record with this number in the run. No two of 10,000 consecutive ones have the same user on
    the same page. Without `group` it is the first one of its own group.
    """
    page, user = divmod(number, _WHO)
    number_of_group = number if group is None else group
    which = MARK_SERVER << INDEX_BITS | number
    return Sentinel(which, campaign, partition, time_ms, kind, user, page % _WHO, number_of_group, part)


def is_opening(number: Ints, partitions: int) -> Mask:
    """Return which sentinel records open the load. Opening and closing ones alternate in blocks as large as the number
    of partitions.
    """
    return np.asarray(number % (2 * partitions) < partitions)


def as_events(codec: Codec, marks: Sequence[Sentinel]) -> Columns:
    """Convert sentinel records to events of the log, one per row: `event_id`, `event_time_ms` and their content."""
    contents = [codec.mark(each) for each in marks]
    columns = {name: [content[name] for content in contents] for name in codec.content}
    columns |= {"event_id": [each.id for each in marks], "event_time_ms": [each.event_time_ms for each in marks]}
    return {name: np.array(column, dtype=np.int64) for name, column in columns.items()}


@dataclass(frozen=True)
class MarkBlock:
    """Sentinel records as a block of a tape, so that an oracle plans them together with the load."""

    id: NDArray[np.uint64]
    event_time_rel_ms: Ints
    content: Columns
    poison: NDArray[np.int8]

    @classmethod
    def of(cls, codec: Codec, marks: Sequence[Sentinel], epoch_ms: int) -> MarkBlock:
        columns = as_events(codec, marks)
        return cls(
            columns["event_id"].astype(np.uint64),
            columns["event_time_ms"] - epoch_ms,
            {name: columns[name] for name in codec.content},
            np.zeros(len(marks), dtype=np.int8),
        )

    def __len__(self) -> int:
        return len(self.id)


def totals_of(oracle: Oracle, codec: Codec, marks: Sequence[Sentinel]) -> Totals:
    """Return the values of their cells, if these hold nothing else."""
    places = oracle.places(as_events(codec, marks))
    return oracle.fold(places.cell, places.columns)


def closes_ms_of(oracle: Oracle, codec: Codec, marks: Sequence[Sentinel]) -> int | None:
    """Return the watermark at which their cells are complete; None if they have no cell."""
    closes_ms = oracle.places(as_events(codec, marks)).closes_ms
    return int(closes_ms.max()) if len(closes_ms) else None


def group_of(oracle: Oracle, codec: Codec) -> tuple[Sentinel, ...]:
    """Return sentinel records, independent of a run, that share a cell if any do, at the beginning of a window."""
    time_ms = -(-SOME_DAY_MS // oracle.part_ms) * oracle.part_ms
    parts = range(max(1, codec.mark_size))
    return tuple(mark(part, 0, 0, time_ms + part, "opening", group=0, part=part) for part in parts)


def why_unanswered(oracle: Oracle, codec: Codec) -> str:
    """Return the reason, as a sentence, why no run can begin with events that must be answered; "" if one can."""
    size = codec.mark_size
    if not 0 < size <= LARGEST_GROUP:
        together = f"{size:,} of them do only together" if size else "neither one alone nor all together do"
        return (
            f"A run begins with events that have to lie in a cell, and of {TRIED:,} that were drawn at a multiple of "
            f"`step_ms` {together}; up to {LARGEST_GROUP} may be needed. Let windows begin there. Make the condition "
            "of `cells` one that more events meet, or give the values that it asks for larger weights."
        )
    marks = group_of(oracle, codec)
    if not len(totals_of(oracle, codec, marks).cell):
        return (
            f"A run begins with events that have to be answered, and `fold` gives no row for the cell of "
            f"{many(size, 'event')}. Let it give one for each cell."
        )
    return ""
