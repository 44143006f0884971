"""What was read of a run, as values: of its log, its results, and the looks at them. Whoever reads makes them, and the
checks get to see them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from harness.evidence.checksums import Checksum
from harness.evidence.column_buffer import Growing
from harness.evidence.ledger import Expectation, Ledger
from harness.model import KeptState
from workloads.base import Columns, Ints, Mask, Oracle

# A column that the log of a run has only if a planned fault took records out of it: what had become of each by then.
FATE = "fate"
KEPT, DONE, UNREAD = 0, 1, 2  # it is still there; it was removed when the engine had done it; it was removed before
# A column that it has only if events are to count by another time than their own: that which a record has in Kafka.
STAMPED = "stamped_ms"

ROWS_AT_ONCE = 1 << 18  # of a log, which may be larger than memory
NO_BATCH = -1
OFFSET_BITS = 47  # of a record's number, below its partition


class LogTable(Protocol):
    """A log, in the order of partitions and offsets: what a table of Arrow has of it, so that a table is one."""

    @property
    def schema(self) -> Any: ...
    def column(self, name: str) -> Any:
        """As one of Arrow."""

    def select(self, names: Sequence[str]) -> LogTable: ...
    def to_batches(self, *, max_chunksize: int) -> Iterable[Any]: ...


def parts_of(log: LogTable) -> Iterator[Columns]:
    """At least one, so that an empty log has its columns."""
    names = log.schema.names
    yield {name: log.schema.empty_table().column(name).to_numpy() for name in names}
    for batch in log.to_batches(max_chunksize=ROWS_AT_ONCE):
        yield {name: batch.column(name).to_numpy(zero_copy_only=False) for name in names}


def picked(column: NDArray[Any], rows: Mask) -> NDArray[Any]:
    """Mostly all of it, and a copy of a long column takes its time and its room."""
    return column if rows.all() else column[rows]


@dataclass(frozen=True)
class LogEvents:
    """The countable events of the Kafka log, a row for each cell in which one lies, ordered by partition and offset."""

    partition: NDArray[np.int16]
    offset: NDArray[np.integer[Any]]
    id: NDArray[np.int64]
    time_ms: NDArray[np.int64]
    cell: NDArray[np.int64]
    closes_ms: NDArray[np.int64]  # a watermark from here on makes it late for its cell
    columns: Columns = field(default_factory=dict)  # what the oracle needs to fold them

    @classmethod
    def joined(cls, parts: Iterable[LogEvents]) -> LogEvents:
        """One after the other, of one part at least. None of them is kept."""
        named = {each.name: Growing() for each in fields(cls) if each.name != "columns"}
        columns: dict[str, Growing] = {}
        for part in parts:
            for name, column in named.items():
                column.add(getattr(part, name))
            for name, values in part.columns.items():
                columns.setdefault(name, Growing()).add(values)
        whole = {name: column.whole() for name, column in named.items()}
        return cls(**whole, columns={name: column.whole() for name, column in columns.items()})

    def __len__(self) -> int:
        return len(self.id)

    def only(self, mask: NDArray[np.bool_] | NDArray[np.intp]) -> LogEvents:
        if mask.dtype == np.bool_ and mask.all():  # mostly so, and a copy of a long log takes its time and its room
            return self
        named = {each.name: getattr(self, each.name)[mask] for each in fields(self) if each.name != "columns"}
        return LogEvents(**named, columns={name: column[mask] for name, column in self.columns.items()})

    @property
    def record(self) -> NDArray[np.int64]:
        """A number for each record of the log: an event that lies in several cells has several rows."""
        return (self.partition.astype(np.int64) << OFFSET_BITS) | self.offset

    @property
    def begins_record(self) -> NDArray[np.bool_]:
        """Whether a row is the first one of its record: rows of one lie side by side."""
        return _begins(self.partition, self.offset)

    def records(self, rows: NDArray[np.bool_] | None = None) -> int:
        """How many records these rows are of, or all."""
        places = self.partition, self.offset
        return int(np.count_nonzero(_begins(*(places if rows is None else (column[rows] for column in places)))))


def _begins(partition: NDArray[np.int16], offset: NDArray[np.integer[Any]]) -> Mask:
    begins = (offset[1:] != offset[:-1]) | (partition[1:] != partition[:-1])
    return np.append(np.ones(min(1, len(offset)), dtype=np.bool_), begins)


@dataclass(frozen=True)
class NamedLate:
    """What an engine itself says to have dropped as late."""

    record: NDArray[np.int64]  # numbers as those of LogEvents: late for all cells in which they lie
    lacks: str = ""  # why that may not be all of it, or too much
    # Rows of a record and the field of a cell: late for its cells with this field alone.
    windows: NDArray[np.int64] = field(default_factory=lambda: np.empty((0, 2), dtype=np.int64))


def folded(oracle: Oracle, events: LogEvents, rows: Mask | None = None) -> Ledger:
    """What cells hold of all these events, or of some."""
    if rows is None or rows.all():
        return Ledger.of(oracle.fold(events.cell, events.columns))
    return Ledger.of(oracle.fold(events.cell[rows], {name: column[rows] for name, column in events.columns.items()}))


@dataclass(frozen=True)
class Named:
    """How many records are wrong in one way, and the names of the first ones."""

    count: int = 0
    examples: tuple[str, ...] = ()


@dataclass(frozen=True)
class LogAudit:
    """The tape against the Kafka log, record by record."""

    planned: int
    found: int
    missing: Named
    doubled: Named
    foreign: Named
    altered: Named
    removed: int = 0  # so many of them a planned fault has taken out of the log again

    @property
    def wrong(self) -> bool:
        return any(each.count for each in (self.missing, self.doubled, self.foreign, self.altered))


@dataclass(frozen=True)
class Doubt:
    """What tape and log disagree in, cell by cell: an engine may have read the one or the other."""

    missing: Ledger = field(default_factory=Ledger)  # sent, and not in the log when it was read
    extra: Ledger = field(default_factory=Ledger)  # in the log, and not as it was planned
    newest_ms: int | None = None  # the newest event time of what is missing: it may have made others late

    def widened(self, expectation: Expectation) -> Expectation:
        """What is missing may have been counted, and what is too much need not be."""
        if not self.missing and not self.extra:
            return expectation
        must = Ledger((cell, max(0, count - self.extra.count(cell))) for cell, count in expectation.must.items())
        return Expectation(must, expectation.may + self.missing)


@dataclass(frozen=True)
class Stray:
    """Something in the results that is no count of a known campaign."""

    where: str
    value: str
    # "campaign": of none that exists; "orphan": a window of Yahoo's schema to which no campaign refers; "number": it
    # stands where a count belongs and can't be read as one; "key": it is nothing that anybody takes for a result
    kind: Literal["campaign", "orphan", "number", "key"]


@dataclass(frozen=True)
class Ambiguity:
    """One cell with two values or more: which of them is read is chance."""

    cell: int
    what: Literal["count", "sums"]
    texts: tuple[str, ...]


@dataclass(frozen=True)
class Observed:
    """All that the results held."""

    counts: Ledger
    strays: tuple[Stray, ...]
    sums: Mapping[int, Checksum] = field(default_factory=dict)
    zeros: tuple[int, ...] = ()  # cells that hold a count of 0, which a ledger forgets
    ambiguities: tuple[Ambiguity, ...] = ()
    left: Mapping[int, int] = field(default_factory=dict)  # cells of outputs, each with its place among all that left


@dataclass(frozen=True)
class State:
    """A copy of an engine's state, and what lay in it."""

    kept: KeptState
    held: Observed


@dataclass(frozen=True)
class Edits:
    """What became of the run's files since its first verdict."""

    files: int = 0  # so many were compared
    changed: tuple[str, ...] = ()  # in words: "log.parquet was edited"
    lack: str = ""  # why nothing could be compared


@dataclass(frozen=True)
class Glitch:
    """What was seen for a while and is no count of anything that exists. None: it was there at the last look."""

    where: str
    text: str
    from_us: int
    until_us: int | None


@dataclass(frozen=True)
class AfterStop:
    """The results as they were read again when the engine had been told to stop and had ended."""

    observed: Observed | None = None  # None: it had ended before, or they could not be read
    error: str = ""  # why not


@dataclass(frozen=True)
class Watched:
    """What was seen of the results while the run went on: a row for each change of a count, in order of the looks."""

    at_us: Ints
    cell: Ints
    count: Ints
    longest_gap_ms: float  # between two looks: a change may have been there for so long
    period_ms: float = 0.0  # of the looks: the median
    closed_ms: float = 0.0  # from one look at the closed windows to the next: the median; 0: nobody knows
    unreadable: tuple[Glitch, ...] = ()  # it stood in the place of a count
    strangers: tuple[Glitch, ...] = ()  # it was that of a campaign that can't be
