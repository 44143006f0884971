"""Count the events that a run is judged by, in one pass through them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields

import numpy as np

from harness.evidence.observed import LogEvents
from harness.judging.judged import Judged, JudgedLog
from workloads.base import NEVER, Ints, Mask

NO_RECORD = np.iinfo(np.int64).max  # larger than the number of any record


@dataclass(frozen=True)
class Sums:
    """Numbers of events. A row is a pair of an event and a cell that it is in; a count is a row whose cell counts."""

    rows: int
    records: int
    dropped_records: int
    copies: int  # records that were not dropped
    permitted: int  # rows
    dropped_of_first: int  # rows in cells of the question's first value
    counts: int
    counting_records: int
    dropped_counts: int
    permitted_counts: int
    open_counts: int
    kept_open_counts: int  # of these, those that were not dropped
    in_time_open_counts: int  # of these, those that may not be late


@dataclass(frozen=True)
class Census(Sums):
    """These numbers, and what else is known of all events."""

    counts_of_event: int  # the largest number of cells that count one event
    newest_ms: int
    first_close_ms: int
    open_cells: frozenset[int]
    open_count_cells: frozenset[int]


def census_of(
    judged: JudgedLog, again: Ints, is_count: Callable[[Ints], Mask], is_of_first: Callable[[Ints], Mask]
) -> Census:
    """Count. `again`: the ids of events with more than one record. The functions select cells."""
    numbers: Counter[str] = Counter()
    several, newest_ms, first_close_ms = 1, np.iinfo(np.int64).min, NEVER
    open_cells: set[int] = set()
    open_count_cells: set[int] = set()
    for part, is_copy in copies(judged, again):
        events, counts, is_open = part.events, is_count(part.events.cell), part.is_open
        numbers.update(
            rows=len(events),
            records=events.records(),
            dropped_records=_records(events, part.dropped),
            copies=_records(events, is_copy & part.kept),
            permitted=_sum(part.permitted),
            dropped_of_first=_sum(is_of_first(events.cell[part.dropped])),
            counts=_sum(counts),
            counting_records=events.records() if counts.all() else events.records(counts),
            dropped_counts=_sum(part.dropped & counts),
            permitted_counts=_sum(part.permitted & counts),
        )
        several = max(several, _most_rows_of_a_record(events, counts))
        newest_ms = max(newest_ms, int(events.time_ms.max(initial=newest_ms)))
        first_close_ms = min(first_close_ms, int(events.closes_ms.min(initial=NEVER)))
        if is_open.any():
            numbers.update(
                open_counts=_sum(is_open & counts),
                kept_open_counts=_sum(is_open & counts & part.kept),
                in_time_open_counts=_sum(is_open & counts & ~part.permitted),
            )
            open_cells.update(np.unique(events.cell[is_open]).tolist())
            open_count_cells.update(np.unique(events.cell[is_open & counts]).tolist())
    return Census(
        **{each.name: numbers[each.name] for each in fields(Sums)},
        counts_of_event=several,
        newest_ms=newest_ms,
        first_close_ms=first_close_ms,
        open_cells=frozenset(open_cells),
        open_count_cells=frozenset(open_count_cells),
    )


def copies(judged: JudgedLog, again: Ints) -> Iterator[tuple[Judged, Mask]]:
    """Yield the parts, each with the rows of second and later records of an event."""
    first = np.full(len(again), NO_RECORD)  # of each of these events, the first record
    for part in judged:
        is_copy = np.zeros(len(part.events), dtype=np.bool_)
        if len(again):
            at = np.searchsorted(again, part.events.id)
            rows = np.flatnonzero(np.append(again, NO_RECORD)[at] == part.events.id)
            record, of_event = part.events.record[rows], at[rows]
            np.minimum.at(first, of_event, record)
            is_copy[rows] = record != first[of_event]
        yield part, is_copy


def _records(events: LogEvents, rows: Mask) -> int:
    return events.records(rows) if rows.any() else 0


def _sum(rows: Mask) -> int:
    return int(np.count_nonzero(rows))


def _most_rows_of_a_record(events: LogEvents, rows: Mask) -> int:
    """Rows of a record are adjacent."""
    record = events.record[rows]
    begins = np.flatnonzero(np.diff(record, prepend=-1, append=NO_RECORD))
    return int(np.diff(begins).max(initial=0))
