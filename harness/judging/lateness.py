"""Which events count, which may be late, and which exactly were dropped. Columns of the log in, boolean masks out.

Two sources, in this order: the log and the declared lateness say which events *could* be dropped by an honest engine
(`permitted`); the engine's own durable batch log, or its own list of them, says which ones *were* (`dropped`). The
second may narrow the first, never widen it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.evidence.column_buffer import Growing
from harness.evidence.grouping import narrow, spans
from harness.evidence.observed import NO_BATCH, LogEvents, LogTable, NamedLate, parts_of, picked
from harness.model import INDEX_BITS, MARK_SERVER, Batch, BatchLog, EarlierRun, FileSeam, Progress, RunSpec
from harness.util.durations import seconds
from workloads.base import BESIDE, COUNTS, Codec, Columns, Oracle
from workloads.cells import Codes

NO_TIME = np.iinfo(np.int64).min // 2  # earlier than any
Ends = tuple[int, ...]  # by partition the first offset that is not in it any more
# Of LogEvents, the columns of the log that they have.
NAMES = {"partition": "partition", "offset": "offset", "id": "event_id", "time_ms": "event_time_ms"}


@dataclass(frozen=True)
class Countable:
    """The events of a log that an engine has to count, and what is known of each one's fate."""

    events: LogEvents
    permitted: NDArray[np.bool_]
    dropped: NDArray[np.bool_]
    batch: NDArray[np.integer[Any]]
    exact: bool  # it is known of every event whether it was dropped
    counted_before: NDArray[np.bool_]  # dropped, but another run over it had counted it, and may have shown it

    def only(self, mask: NDArray[np.bool_]) -> Countable:
        if mask.all():
            return self
        rows = (self.permitted[mask], self.dropped[mask], self.batch[mask])
        return Countable(self.events.only(mask), *rows, self.exact, self.counted_before[mask])


def countable(
    log: LogTable,
    batch_log: BatchLog | None,
    spec: RunSpec,
    oracle: Oracle,
    codec: Codec,
    *,
    named: NamedLate | None = None,
    missing_ms: int | None = None,
    kinds: Collection[int] = (COUNTS,),
) -> Countable:
    """All events that count, and which of them were dropped as late, as far as that is known.

    `named`: those that the engine names, where there is no batch log. `missing_ms`: the newest time of an event that
    was sent and is not in the log. `kinds`: of records that may lie in a cell.
    """
    events, before_ms = _counted(log, oracle, codec, missing_ms, kinds)
    before_ms -= min(watermarks_ms(spec))
    late = before_ms >= events.closes_ms
    del before_ms
    gone = np.zeros(len(events), dtype=np.bool_)
    before = gone
    batch = batch_of(events, batch_log) if batch_log else np.broadcast_to(np.int32(NO_BATCH), len(events))
    exact = batch_log is not None and batch_log.complete
    if batch_log is not None and exact:
        gone = dropped(events, batch, batch_log) & late
        before = gone & counted_by(events, batch_log.earlier)
    elif batch_log is None and named is not None and not named.lacks:
        exact, gone = True, named_among(events, named, oracle.codes) & late
    return Countable(events, late, gone, batch, exact, before)


def _counted(
    log: LogTable, oracle: Oracle, codec: Codec, missing_ms: int | None, kinds: Collection[int]
) -> tuple[LogEvents, NDArray[np.int64]]:
    """Of the log what counts, and the newest time that may have been read before each."""
    names = [*dict.fromkeys([*NAMES.values(), *codec.decisive])]
    before, newest = Growing(), Newest()

    def parts() -> Iterator[LogEvents]:
        for part in parts_of(log.select([*dict.fromkeys((*names, "kind"))])):
            # All well-formed events, views or not: an engine may take its watermark from any of them.
            well_formed = (part["kind"] == COUNTS) | (part["kind"] == BESIDE)
            read = {name: picked(column, well_formed) for name, column in part.items()}
            before_ms = newest.read(*(read[name] for name in ("partition", "event_id", "event_time_ms")))
            counts = np.flatnonzero(np.isin(read["kind"], [*kinds]))
            events, row = events_of({name: read[name][counts] for name in names}, oracle)
            before.add(_picked(before_ms[counts], row))
            yield events

    events = LogEvents.joined(parts())
    before_ms = before.whole()
    newest.read_elsewhere(events.partition, before_ms, missing_ms)
    return events, before_ms


def _picked(column: NDArray[Any], row: NDArray[np.intp]) -> NDArray[Any]:
    """Mostly each event lies in one cell, and then a column is what it was."""
    return column if np.array_equal(row, np.arange(len(column))) else column[row]


def events_of(log: Columns, oracle: Oracle) -> tuple[LogEvents, NDArray[np.intp]]:
    """Records of the log that count, by the cells in which they lie, and the row of each in these columns."""
    row, cell, closes_ms, columns = oracle.places(log)
    named = {name: _picked(log[column], row) for name, column in NAMES.items()}
    named["offset"] = narrow(named["offset"])
    return LogEvents(**named, cell=cell, closes_ms=closes_ms, columns=columns), row


def never_closed(events: LogEvents, watermark_ms: int) -> NDArray[np.bool_]:
    """Those in cells that the newest event of all leaves open, by the declared lateness."""
    return np.asarray(events.closes_ms > int(events.time_ms.max(initial=0)) - watermark_ms)


def watermarks_ms(spec: RunSpec) -> list[int]:
    """The declared lateness, and all to which a plan changes it on the way."""
    changes = [leaf for leaf in spec.fault.leaves if leaf.action == "change-watermark"]
    return [spec.watermark_ms, *(round(seconds(leaf.options["to"], "to") * 1000) for leaf in changes)]


class Newest:
    """The newest time that an engine which reads each partition in order, and the partitions at any pace, may have seen
    when it reads a record. With the watermark that far an event may be late.

    What could have been read before a record is all of the other partitions and the earlier ones of its own. The
    harness' own marks make nothing late: the closing ones are sent when the engine has seen everything else.
    What is missing from the log may have been read before anything.
    """

    def __init__(self) -> None:
        self._peaks: dict[int, int] = {}

    def read(
        self, partition: NDArray[np.int16], ids: NDArray[np.int64], time_ms: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """These come next, in the order of partitions and offsets. For each the newest time of its own partition."""
        newest = np.where(ids >> INDEX_BITS == MARK_SERVER, NO_TIME, time_ms)
        for p, rows in _parts(partition).items():
            own = newest[rows]
            own[0] = max(own[0], self._peaks.get(p, NO_TIME))
            np.maximum.accumulate(own, out=own)
            self._peaks[p] = int(own[-1])
        return newest

    def read_elsewhere(
        self, partition: NDArray[np.int16], before_ms: NDArray[np.int64], missing_ms: int | None
    ) -> None:
        """Now that all is read: with the newest time of the other partitions, in place."""
        unseen = NO_TIME if missing_ms is None else missing_ms
        for p, rows in _parts(partition).items():
            elsewhere = max((peak for other, peak in self._peaks.items() if other != p), default=NO_TIME)
            np.maximum(before_ms[rows], max(elsewhere, unseen), out=before_ms[rows])


def _parts(partition: NDArray[np.int16]) -> dict[int, slice]:
    """The rows of each partition: they are in order."""
    starts = [0, *(np.flatnonzero(np.diff(partition)) + 1).tolist()] if len(partition) else []
    ends = [*starts[1:], len(partition)]
    return {int(partition[lo]): slice(lo, hi) for lo, hi in zip(starts, ends, strict=False)}


def batch_of(events: LogEvents, log: BatchLog) -> NDArray[np.integer[Any]]:
    """The batch that took each event: the smallest N whose end lies beyond the event's offset, else NO_BATCH. What lies
    in files was taken from there, and not from Kafka."""
    batches = sorted(log.batches, key=lambda b: b.batch)
    from_log = _first_beyond(events, batches, [b.ends for b in batches])
    if log.seam is None:
        return from_log
    from_files = _first_beyond(events, batches, [b.files for b in batches])
    return np.where(in_files(events, log.seam), from_files, from_log)


def in_files(events: LogEvents, seam: FileSeam) -> NDArray[np.bool_]:
    """Which events count from files."""
    if seam.until_ms is not None:
        return np.asarray(events.time_ms < seam.until_ms)
    return below(events, seam.ends)


def below(events: LogEvents, ends: Ends) -> NDArray[np.bool_]:
    return between(events, {}, dict(enumerate(ends)))


def between(events: LogEvents, begins: Mapping[int, int], ends: Mapping[int, int]) -> NDArray[np.bool_]:
    """Which events lie between these offsets of their partition."""
    result = np.zeros(len(events), dtype=np.bool_)
    for partition, end in ends.items():
        behind = (events.offset >= begins.get(partition, 0)) & (events.offset < end)
        result |= (events.partition == partition) & behind
    return result


def _first_beyond(
    events: LogEvents, batches: Sequence[Batch], ends_of: Sequence[Mapping[int, int]]
) -> NDArray[np.integer[Any]]:
    """A batch that says nothing of a partition has come no further in it than the one before."""
    numbers = narrow(np.array([*(b.batch for b in batches), NO_BATCH], dtype=np.int64))
    result = np.full(len(events), NO_BATCH, dtype=numbers.dtype)
    if not batches:
        return result
    for p, rows in _parts(events.partition).items():
        ends = np.maximum.accumulate(np.array([each.get(p, 0) for each in ends_of], dtype=np.int64))
        result[rows] = numbers[np.searchsorted(ends, events.offset[rows], side="right")]
    return result


def dropped(events: LogEvents, batch: NDArray[np.integer[Any]], log: BatchLog) -> NDArray[np.bool_]:
    """Events that the engine dropped as late, by the rule of its own batch log; `batch` took each of them."""
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
    """Events that the engine says to have dropped. A window in which one does not lie names nothing."""
    rows, fields = _with_windows(events, named, codes)
    windows = set(map(tuple, named.windows.tolist()))
    result = np.isin(events.record, named.record)
    result[rows] |= np.array([name in windows for name in fields], dtype=np.bool_)
    return result


def named_elsewhere(events: LogEvents, named: NamedLate, codes: Codes) -> int:
    """How many names are of a window in which their event does not lie."""
    lying = set(_with_windows(events, named, codes)[1])
    known = named.windows[np.isin(named.windows[:, 0], events.record)]
    return sum(name not in lying for name in map(tuple, known.tolist()))


def _with_windows(events: LogEvents, named: NamedLate, codes: Codes) -> tuple[NDArray[np.intp], list[tuple[int, int]]]:
    """The rows of all events that it names with a window, and of each the record and the field of its cell."""
    rows = np.flatnonzero(np.isin(events.record, named.windows[:, 0]))
    columns = events.record[rows].tolist(), codes.fields(events.cell[rows]).tolist()
    return rows, [*zip(*columns, strict=True)]


class Restart(NamedTuple):
    """A new start of an engine that names what it drops."""

    at_ms: int
    done: Mapping[int, int]  # the offsets from which it went on, at the earliest


def restarts(starts_ms: Iterable[int], told: Sequence[Progress]) -> list[Restart]:
    """It goes on where its newest durable progress was. It did not if what it tells afterwards lies before that."""
    found = []
    for at_ms in starts_ms:
        before = [number for number, line in enumerate(told) if line.at_ms <= at_ms]
        since = told[before[-1] :] if before else ()
        partitions = {p for line in since for p in line.offsets}
        found.append(Restart(at_ms, {p: min(line.offsets.get(p, 0) for line in since) for p in partitions}))
    return found


def read_again(events: LogEvents, sent_us: NDArray[np.int64], starts: Iterable[Restart]) -> NDArray[np.bool_]:
    """Events that may have been read before a restart and once more after it. What was named before it may have been
    counted then: a watermark may begin anew."""
    result = np.zeros(len(events), dtype=np.bool_)
    for start in starts:
        result |= (sent_us <= start.at_ms * 1000) & ~between(events, {}, start.done)
    return result


def in_run(events: LogEvents, run: EarlierRun) -> NDArray[np.bool_]:
    """Events that lay between the start and the end of a run that was forgotten."""
    return between(events, run.starts, run.ends)


def counted_by(events: LogEvents, runs: Iterable[EarlierRun]) -> NDArray[np.bool_]:
    """Events that some run which was forgotten did not drop."""
    result = np.zeros(len(events), dtype=np.bool_)
    for run in runs:
        result |= in_run(events, run) & (events.closes_ms > run.drop_watermark_ms)
    return result
