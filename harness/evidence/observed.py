"""Evidence that was read of a run, as values: its log, its results, and the polls of them.

The readers create these values, and the checks use them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from harness.evidence.checksums import Checksum
from harness.evidence.column_buffer import Growing
from harness.evidence.ledger import Expectation, Ledger
from harness.model import KeptState
from workloads.base import Columns, Ints, Kind, Mask, Oracle

# A log has this column only if a planned fault removed records from it: the state of each record by then.
FATE = "fate"
KEPT, DONE, UNREAD = 0, 1, 2  # still there; removed after the engine had processed it; removed before
# A log has this column only if events count by another time than their own: the record's timestamp in Kafka.
STAMPED = "stamped_ms"

ROWS_AT_ONCE = 1 << 18  # of a log, which may be larger than memory
NO_BATCH = -1
OFFSET_BITS = 47  # of a record's number; the partition is above them


class LogTable(Protocol):
    """A log, ordered by partition and offset. The protocol is the part of an Arrow table that its readers use."""

    @property
    def schema(self) -> Any: ...
    def column(self, name: str) -> Any:
        """Return a column as an Arrow table does."""

    def select(self, names: Sequence[str]) -> LogTable: ...
    def to_batches(self, *, max_chunksize: int) -> Iterable[Any]: ...


def parts_of(log: LogTable) -> Iterator[Columns]:
    """Yield the log in parts: at least one, so that even an empty log has its columns."""
    names = log.schema.names
    yield {name: log.schema.empty_table().column(name).to_numpy() for name in names}
    for batch in log.to_batches(max_chunksize=ROWS_AT_ONCE):
        yield {name: batch.column(name).to_numpy(zero_copy_only=False) for name in names}


def picked(column: NDArray[Any], rows: Mask) -> NDArray[Any]:
    """Select rows. If all are selected, return the column itself: a copy of a long column takes time and memory."""
    return column if rows.all() else column[rows]


@dataclass(frozen=True)
class LogEvents:
    """The countable events of the Kafka log, ordered by partition and offset.

    An event has a row for each of its cells.
    """

    partition: NDArray[np.int16]
    offset: NDArray[np.integer[Any]]
    id: NDArray[np.int64]
    time_ms: NDArray[np.int64]
    cell: NDArray[np.int64]
    closes_ms: NDArray[np.int64]  # a watermark from here on makes the event late for its cell
    columns: Columns = field(default_factory=dict)  # the columns that the oracle needs to fold the events

    @classmethod
    def joined(cls, parts: Iterable[LogEvents]) -> LogEvents:
        """Join at least one part, without keeping the parts in memory."""
        named = {each.name: Growing() for each in fields(cls) if each.name != "columns"}
        columns: dict[str, Growing] = {}
        for part in parts:
            for name, column in named.items():
                column.add(getattr(part, name))
            for name, values in part.columns.items():
                columns.setdefault(name, Growing()).add(values)
        whole = {name: column.finish() for name, column in named.items()}
        return cls(**whole, columns={name: column.finish() for name, column in columns.items()})

    def __len__(self) -> int:
        return len(self.id)

    def only(self, mask: NDArray[np.bool_] | NDArray[np.intp]) -> LogEvents:
        if mask.dtype == np.bool_ and mask.all():  # usual, and a copy of a long log takes time and memory
            return self
        named = {each.name: getattr(self, each.name)[mask] for each in fields(self) if each.name != "columns"}
        return LogEvents(**named, columns={name: column[mask] for name, column in self.columns.items()})

    @property
    def record(self) -> NDArray[np.int64]:
        """The number of each row's record. An event in several cells has several rows."""
        return (self.partition.astype(np.int64) << OFFSET_BITS) | self.offset

    @property
    def begins_record(self) -> NDArray[np.bool_]:
        """True for the first row of each record; rows of one record are adjacent."""
        return _begins(self.partition, self.offset)

    def records(self, rows: NDArray[np.bool_] | None = None) -> int:
        """Count the records of these rows, or of all."""
        places = self.partition, self.offset
        return int(np.count_nonzero(_begins(*(places if rows is None else (column[rows] for column in places)))))


class OfEvents(Protocol):
    """A dataclass with events, and columns with a row for each of them."""

    @property
    def events(self) -> LogEvents: ...


_Part = TypeVar("_Part", bound=OfEvents)


def joined(parts: Iterable[_Part]) -> _Part:
    """Join at least one part, without keeping the parts in memory. What is no column is equal in all of them."""
    columns: dict[str, Growing] = {}
    last: list[_Part] = []

    def events() -> Iterator[LogEvents]:
        for part in parts:
            for each in fields(part):  # type: ignore[arg-type]
                if isinstance(column := getattr(part, each.name), np.ndarray):
                    columns.setdefault(each.name, Growing()).add(column)
            last[:] = [part]
            yield part.events

    whole = LogEvents.joined(events())
    grown: dict[str, Any] = {name: column.finish() for name, column in columns.items()}
    return replace(last[0], events=whole, **grown)  # type: ignore[type-var]


def _begins(partition: NDArray[np.int16], offset: NDArray[np.integer[Any]]) -> Mask:
    begins = (offset[1:] != offset[:-1]) | (partition[1:] != partition[:-1])
    return np.append(np.ones(min(1, len(offset)), dtype=np.bool_), begins)


@dataclass(frozen=True)
class NamedLate:
    """The events that an engine itself reports as dropped because they were late."""

    record: NDArray[np.int64]  # numbers as in LogEvents: late for all their cells
    lacks: str = ""  # why the report may be incomplete, or name too many
    # Pairs of a record and the field of a cell: late only for its cells with this field.
    windows: NDArray[np.int64] = field(default_factory=lambda: np.empty((0, 2), dtype=np.int64))
    # Pairs of a record and a watermark, sorted: late only for its cells that close by then.
    watermarks: NDArray[np.int64] = field(default_factory=lambda: np.empty((0, 2), dtype=np.int64))


def adds_up(oracle: Oracle) -> bool:
    """Return True if the events may be judged in parts, which are asked for again: the values of parts add up to those
    of all. Only counts do: any other value may depend on several events.
    """
    counts = all(value.kind is Kind.COUNT for value in oracle.values)
    return counts and not oracle.merges and not oracle.keeps_rows


def folded(oracle: Oracle, events: LogEvents, rows: Mask | None = None) -> Ledger:
    """Compute the cells' values from all of these events, or from some."""
    if rows is None or rows.all():
        return Ledger.of(oracle.fold(events.cell, events.columns))
    return Ledger.of(oracle.fold(events.cell[rows], {name: column[rows] for name, column in events.columns.items()}))


@dataclass(frozen=True)
class Named:
    """The number of records with one kind of error, and the names of the first ones."""

    count: int = 0
    examples: tuple[str, ...] = ()


@dataclass(frozen=True)
class LogAudit:
    """The result of comparing the tape with the Kafka log, record by record."""

    planned: int
    found: int
    missing: Named
    doubled: Named
    foreign: Named
    altered: Named
    removed: int = 0  # how many of them a planned fault removed from the log again
    # The ids with more than one record, sorted.
    again: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64), compare=False)

    @property
    def wrong(self) -> bool:
        return any(each.count for each in (self.missing, self.doubled, self.foreign, self.altered))


@dataclass(frozen=True)
class Doubt:
    """The difference between tape and log, cell by cell: an engine may have read either of them."""

    missing: Ledger = field(default_factory=Ledger)  # sent, but not in the log when it was read
    extra: Ledger = field(default_factory=Ledger)  # in the log, but not as planned
    newest_ms: int | None = None  # the newest event time of the missing events, which may have made others late

    def widened(self, expectation: Expectation) -> Expectation:
        """Widen the expectation: missing events may have been counted, and extra ones need not be."""
        if not self.missing and not self.extra:
            return expectation
        must = Ledger((cell, max(0, count - self.extra.count(cell))) for cell, count in expectation.must.items())
        return Expectation(must, expectation.may + self.missing)


@dataclass(frozen=True)
class Stray:
    """An entry of the results that is no count of a known key."""

    where: str
    value: str
    # "campaign": an unknown key; "orphan": a window of Yahoo's schema to which no campaign refers; "number": in
    # the place of a count, but no number; "key": a key that is no result in any form
    kind: Literal["campaign", "orphan", "number", "key"]


@dataclass(frozen=True)
class Ambiguity:
    """One cell with two or more values: a reader gets one of them by chance."""

    cell: int
    what: Literal["count", "sums"]
    texts: tuple[str, ...]


@dataclass(frozen=True)
class Observed:
    """The whole content of the results."""

    counts: Ledger
    strays: tuple[Stray, ...]
    sums: Mapping[int, Checksum] = field(default_factory=dict)
    zeros: tuple[int, ...] = ()  # cells that hold a count of 0, which a ledger omits
    ambiguities: tuple[Ambiguity, ...] = ()
    left: Mapping[int, int] = field(default_factory=dict)  # cells of outputs -> place in the order of all outputs


@dataclass(frozen=True)
class State:
    """A copy of an engine's state, and its content."""

    kept: KeptState
    held: Observed


@dataclass(frozen=True)
class Edits:
    """The changes to the run's files since its first verdict."""

    files: int = 0  # the number of files that were compared
    changed: tuple[str, ...] = ()  # in words: "log.parquet was edited"
    lack: str = ""  # why nothing could be compared


@dataclass(frozen=True)
class Glitch:
    """A value that was seen for a while and is no count of an existing cell.

    `until_us` None: it was there at the last poll.
    """

    where: str
    text: str
    from_us: int
    until_us: int | None


@dataclass(frozen=True)
class AfterStop:
    """The results, read again after the engine was stopped and had ended."""

    observed: Observed | None = None  # None: it had ended before, or the results could not be read
    error: str = ""  # why they could not be read


@dataclass(frozen=True)
class Watched:
    """The results as they were seen during the run: a row for each change of a count, in order of the polls."""

    at_us: Ints
    cell: Ints
    count: Ints
    longest_gap_ms: float  # between two polls: a change may have existed that long before it was seen
    begun_ms: int = 0  # the polls were started; 0: unknown
    period_ms: float = 0.0  # between polls: the median
    closed_ms: float = 0.0  # between polls of the closed windows: the median; 0: unknown
    unreadable: tuple[Glitch, ...] = ()  # text in the place of a count
    strangers: tuple[Glitch, ...] = ()  # counts of a key that can't exist
    versions: Mapping[int, str] = field(default_factory=dict)  # when one could be read first -> its name and its writer
