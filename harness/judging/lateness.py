"""Decide which events count, which may be late, and which were dropped. Log columns in, boolean masks out.

Two sources are used, in this order. The log and the declared lateness show which events a correct engine *could* drop
(`permitted`). The engine's own durable batch log, or its own list of dropped events, shows which ones *were* dropped.
The second may narrow the first, never widen it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.evidence.grouping import narrow, spans
from harness.evidence.observed import NO_BATCH, LogEvents, LogTable, NamedLate, adds_up, joined, parts_of, picked
from harness.model import INDEX_BITS, MARK_SERVER, Batch, BatchLog, EarlierRun, FileSeam, Progress, RunSpec
from harness.util.durations import seconds
from workloads.base import BESIDE, COUNTS, Codec, Columns, Oracle
from workloads.cells import Codes

NO_TIME = np.iinfo(np.int64).min // 2  # earlier than any time
Ends = tuple[int, ...]  # by partition: the first offset after these events
# Fields of LogEvents and their columns in the log.
NAMES = {"partition": "partition", "offset": "offset", "id": "event_id", "time_ms": "event_time_ms"}


@dataclass(frozen=True)
class Countable:
    """The events of a log that an engine has to count, and whether each was dropped."""

    events: LogEvents
    permitted: NDArray[np.bool_]
    dropped: NDArray[np.bool_]
    batch: NDArray[np.integer[Any]]
    exact: bool  # it is known for every event whether it was dropped
    counted_before: NDArray[np.bool_]  # dropped, but another run of its batch had counted it, and may have written it

    def only(self, mask: NDArray[np.bool_]) -> Countable:
        if mask.all():
            return self
        rows = (self.permitted[mask], self.dropped[mask], self.batch[mask])
        return Countable(self.events.only(mask), *rows, self.exact, self.counted_before[mask])


class CountedLog:
    """The events of a log that count, and as far as known those that were dropped as late: in parts, which are
    read anew in each pass.

    `named`: those that the engine names, if there is no batch log. `missing_ms`: the newest time of an event that was
    sent and is not in the log. `kinds`: kinds of records that may be in a cell. `again`: selects those named events
    that the engine may have read again, and counted.
    """

    def __init__(
        self,
        log: LogTable,
        batch_log: BatchLog | None,
        spec: RunSpec,
        oracle: Oracle,
        codec: Codec,
        *,
        named: NamedLate | None = None,
        missing_ms: int | None = None,
        kinds: Collection[int] = (COUNTS,),
        again: Callable[[LogEvents], NDArray[np.bool_]] | None = None,
    ) -> None:
        self._log, self._batch_log, self._spec, self._oracle, self._codec = log, batch_log, spec, oracle, codec
        self._named, self._missing_ms, self._kinds, self._again = named, missing_ms, kinds, again
        is_named = named is not None and not named.lacks
        self.exact = is_named if batch_log is None else batch_log.complete

    def parts(self) -> Iterable[Countable]:
        """Return the parts. If the question needs all events at once, they are one part, which is kept."""
        return self._parts() if adds_up(self._oracle) else [self.whole]

    @cached_property
    def whole(self) -> Countable:
        """All of them at once."""
        return joined(self._parts())

    def _parts(self) -> Iterator[Countable]:
        names, own = [*dict.fromkeys([*NAMES.values(), *self._codec.decisive])], Newest()
        for read, before_ms in self._read(names, own):
            counts = np.flatnonzero(np.any([read["kind"] == kind for kind in self._kinds], axis=0))
            events, row = events_of({name: read[name][counts] for name in names}, self._oracle)
            seen_ms = before_ms[counts][row]
            self._newest.read_elsewhere(events.partition, seen_ms, self._missing_ms)
            yield self._known(events, seen_ms - min(watermarks_ms(self._spec)) >= events.closes_ms)

    @cached_property
    def _newest(self) -> Newest:
        """The newest event time of each partition."""
        newest = Newest()
        for _ in self._read([*NAMES.values()], newest):
            pass
        return newest

    def _read(self, names: Sequence[str], newest: Newest) -> Iterator[tuple[Columns, NDArray[np.int64]]]:
        """Yield all well-formed events, views or not, because any of them may advance an engine's watermark; with the
        newest time that may have been read of the own partition before each.
        """
        for part in parts_of(self._log.select([*dict.fromkeys((*names, "kind"))])):
            well_formed = (part["kind"] == COUNTS) | (part["kind"] == BESIDE)
            read = {name: picked(column, well_formed) for name, column in part.items()}
            yield read, newest.read(*(read[name] for name in ("partition", "event_id", "event_time_ms")))

    def _known(self, events: LogEvents, late: NDArray[np.bool_]) -> Countable:
        log, gone = self._batch_log, np.zeros(len(events), dtype=np.bool_)
        batch = batch_of(events, log) if log else np.broadcast_to(np.int32(NO_BATCH), len(events))
        before = gone
        if log is not None and self.exact:
            gone = dropped(events, batch, log) & late
            before = gone & counted_by(events, log.earlier)
        elif self._named is not None and self.exact:
            gone = named_among(events, self._named, self._oracle.codes) & late
        if log is None and self._again is not None and gone.any():
            before = _some_of(gone, self._again(events.only(np.flatnonzero(gone))))
        return Countable(events, late, gone, batch, self.exact, before)


def _some_of(rows: NDArray[np.bool_], some: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Select some of the selected rows."""
    result = np.zeros(len(rows), dtype=np.bool_)
    result[np.flatnonzero(rows)] = some
    return result


def _picked(column: NDArray[Any], row: NDArray[np.intp]) -> NDArray[Any]:
    """Return the column itself if each event is in one cell, as usual."""
    return column if np.array_equal(row, np.arange(len(column))) else column[row]


def events_of(log: Columns, oracle: Oracle) -> tuple[LogEvents, NDArray[np.intp]]:
    """Return the records that count, a row per cell, and the row of each in these columns."""
    row, cell, closes_ms, columns = oracle.places(log)
    named = {name: _picked(log[column], row) for name, column in NAMES.items()}
    named["offset"] = narrow(named["offset"])
    return LogEvents(**named, cell=cell, closes_ms=closes_ms, columns={**columns}), row


def never_closed(events: LogEvents, newest_ms: int, watermark_ms: int) -> NDArray[np.bool_]:
    """Select events in cells that the newest event of the log leaves open, given the declared lateness."""
    return np.asarray(events.closes_ms > newest_ms - watermark_ms)


def watermarks_ms(spec: RunSpec) -> list[int]:
    """Return the declared lateness, and all values to which a plan changes it."""
    changes = [leaf for leaf in spec.fault.leaves if leaf.action == "change-watermark"]
    return [spec.watermark_ms, *(round(seconds(leaf.options["to"], "to") * 1000) for leaf in changes)]


class Newest:
    """The newest event time that an engine may have seen when it reads a record.

    The engine reads each partition in order, and at any speed. With this watermark an event may be late. All records of
    other partitions and the earlier ones of its own could have been read before. The sentinel records make nothing
    late: the closing ones are sent after the engine has seen everything else. A record that is missing from the log may
    have been read at any time.
    """

    def __init__(self) -> None:
        self._peaks: dict[int, int] = {}

    def read(
        self, partition: NDArray[np.int16], ids: NDArray[np.int64], time_ms: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Add the next rows, ordered by partition and offset. Return for each the newest time of its own partition."""
        newest = np.where(ids >> INDEX_BITS == MARK_SERVER, NO_TIME, time_ms)
        for p, rows in rows_by_partition(partition).items():
            own = newest[rows]
            own[0] = max(own[0], self._peaks.get(p, NO_TIME))
            np.maximum.accumulate(own, out=own)
            self._peaks[p] = int(own[-1])
        return newest

    def read_elsewhere(
        self, partition: NDArray[np.int16], before_ms: NDArray[np.int64], missing_ms: int | None
    ) -> None:
        """After all rows are read, include the newest time of the other partitions, in place."""
        unseen = NO_TIME if missing_ms is None else missing_ms
        for p, rows in rows_by_partition(partition).items():
            elsewhere = max((peak for other, peak in self._peaks.items() if other != p), default=NO_TIME)
            np.maximum(before_ms[rows], max(elsewhere, unseen), out=before_ms[rows])


def rows_by_partition(partition: NDArray[np.int16]) -> dict[int, slice]:
    """Return the rows of each partition, which are adjacent."""
    starts = [0, *(np.flatnonzero(np.diff(partition)) + 1).tolist()] if len(partition) else []
    ends = [*starts[1:], len(partition)]
    return {int(partition[lo]): slice(lo, hi) for lo, hi in zip(starts, ends, strict=False)}


def batch_of(events: LogEvents, log: BatchLog) -> NDArray[np.integer[Any]]:
    """Return the batch that took each event: the smallest N whose end is after the event's offset, else NO_BATCH.

    Events in files were taken from there, not from Kafka.
    """
    batches = sorted(log.batches, key=lambda b: b.batch)
    from_log = _first_beyond(events, batches, [b.ends for b in batches])
    if log.seam is None:
        return from_log
    from_files = _first_beyond(events, batches, [b.files for b in batches])
    return np.where(in_files(events, log.seam), from_files, from_log)


def in_files(events: LogEvents, seam: FileSeam) -> NDArray[np.bool_]:
    """Select events that count from files."""
    if seam.until_ms is not None:
        return np.asarray(events.time_ms < seam.until_ms)
    return below(events, seam.ends)


def below(events: LogEvents, ends: Ends) -> NDArray[np.bool_]:
    return between(events, {}, dict(enumerate(ends)))


def between(events: LogEvents, begins: Mapping[int, int], ends: Mapping[int, int]) -> NDArray[np.bool_]:
    """Select events between these offsets of their partition."""
    result = np.zeros(len(events), dtype=np.bool_)
    for partition, end in ends.items():
        behind = (events.offset >= begins.get(partition, 0)) & (events.offset < end)
        result |= (events.partition == partition) & behind
    return result


def _first_beyond(
    events: LogEvents, batches: Sequence[Batch], ends_of: Sequence[Mapping[int, int]]
) -> NDArray[np.integer[Any]]:
    """A batch that does not mention a partition has the same end there as the batch before."""
    numbers = narrow(np.array([*(b.batch for b in batches), NO_BATCH], dtype=np.int64))
    result = np.full(len(events), NO_BATCH, dtype=numbers.dtype)
    if not batches:
        return result
    for p, rows in rows_by_partition(events.partition).items():
        ends = np.maximum.accumulate(np.array([each.get(p, 0) for each in ends_of], dtype=np.int64))
        result[rows] = numbers[np.searchsorted(ends, events.offset[rows], side="right")]
    return result


def dropped(events: LogEvents, batch: NDArray[np.integer[Any]], log: BatchLog) -> NDArray[np.bool_]:
    """Select events that the engine dropped as late, by the rule of its own batch log; `batch` took each of them."""
    if not log.drops_late or not log.batches:
        return np.zeros(len(events), dtype=np.bool_)
    marks = {NO_BATCH: np.iinfo(np.int64).min} | {b.batch: b.drop_watermark_ms for b in log.batches}
    taken = np.array(sorted(marks), dtype=np.int64)
    watermark_ms = np.array([marks[int(b)] for b in taken], dtype=np.int64)
    result = np.zeros(len(events), dtype=np.bool_)
    for rows in spans(len(events)):
        result[rows] = events.closes_ms[rows] <= watermark_ms[np.searchsorted(taken, batch[rows])]
    return result


def named_among(events: LogEvents, named: NamedLate, codes: Codes) -> NDArray[np.bool_]:
    """Select events that the engine names as dropped. A name with a window that does not hold its event is ignored."""
    rows, fields = _with_windows(events, named, codes)
    windows = set(map(tuple, named.windows.tolist()))
    result = np.isin(events.record, named.record)
    result[rows] |= np.array([name in windows for name in fields], dtype=np.bool_)
    return result | _closed_by_name(events, named)


def _closed_by_name(events: LogEvents, named: NamedLate) -> NDArray[np.bool_]:
    """Select the events that are named with a watermark, in the cells that it has closed."""
    record, watermark_ms = named.watermarks.T
    rows = np.flatnonzero(np.isin(events.record, record))
    result = np.zeros(len(events), dtype=np.bool_)
    result[rows] = events.closes_ms[rows] <= watermark_ms[np.searchsorted(record, events.record[rows])]
    return result


def named_elsewhere(events: LogEvents, named: NamedLate, codes: Codes) -> int:
    """Count names with a window that does not hold their event."""
    lying = set(_with_windows(events, named, codes)[1])
    known = named.windows[np.isin(named.windows[:, 0], events.record)]
    return sum(name not in lying for name in map(tuple, known.tolist()))


def _with_windows(events: LogEvents, named: NamedLate, codes: Codes) -> tuple[NDArray[np.intp], list[tuple[int, int]]]:
    """Return the rows of all events that are named with a window, and the record and cell field of each."""
    rows = np.flatnonzero(np.isin(events.record, named.windows[:, 0]))
    columns = events.record[rows].tolist(), codes.fields(events.cell[rows]).tolist()
    return rows, [*zip(*columns, strict=True)]


class Restart(NamedTuple):
    """A restart of an engine that names what it drops."""

    at_ms: int
    done: Mapping[int, int]  # the offsets from which it continued, at the earliest


def restarts(starts_ms: Iterable[int], told: Sequence[Progress]) -> list[Restart]:
    """Find from where an engine continued: at its newest durable progress, or before it if later lines show that."""
    found = []
    for at_ms in starts_ms:
        before = [number for number, line in enumerate(told) if line.at_ms <= at_ms]
        since = told[before[-1] :] if before else ()
        partitions = {p for line in since for p in line.offsets}
        found.append(Restart(at_ms, {p: min(line.offsets.get(p, 0) for line in since) for p in partitions}))
    return found


def read_again(events: LogEvents, sent_us: NDArray[np.int64], starts: Iterable[Restart]) -> NDArray[np.bool_]:
    """Select events that may have been read before a restart and again after it.

    An event that was named before may be counted afterwards, because the watermark may start anew.
    """
    result = np.zeros(len(events), dtype=np.bool_)
    for start in starts:
        result |= (sent_us <= start.at_ms * 1000) & ~between(events, {}, start.done)
    return result


def in_run(events: LogEvents, run: EarlierRun) -> NDArray[np.bool_]:
    """Select events between the start and end offsets of a forgotten run."""
    return between(events, run.starts, run.ends)


def counted_by(events: LogEvents, runs: Iterable[EarlierRun]) -> NDArray[np.bool_]:
    """Select events that a forgotten run did not drop."""
    result = np.zeros(len(events), dtype=np.bool_)
    for run in runs:
        result |= in_run(events, run) & (events.closes_ms > run.drop_watermark_ms)
    return result
