"""What a workload is: one question that is asked of an engine. Protocols only, as small as their callers allow.

A workload has three parts. The *codec* says what an event is: how it is drawn, written as a record, and read back. The
*oracle* says what is right: which cells an event belongs to, and what a cell then holds. The *results* say where a
reader finds that: by which names, and what has to stand in the services before an engine starts.

**Columns.** Many events, or many cells, are a mapping of names to numpy columns of one length; a row is one of them.

**Cells.** A cell holds one number, and is named by a *code*, an int64 (workloads/cells.py): the number of its key above
(`Results.keys` has their names), and the number of its field below, mostly the start of a window in absolute ms. A
question with two values in each window, such as a count and a sum, has two cells there, which are two keys.

**Lateness** is decided for each event and cell: an event that comes too late for one sliding window may be in time for
the next one. So what is judged are *places*, pairs of an event and a cell in which it lies.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from harness.model import RunSpec, Sentinel, TapeSpec
from workloads.cells import Codes

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
Draws = NDArray[np.uint64]
Columns = Mapping[str, NDArray[Any]]

# What a record of the log is, in the column `kind`: an event that lies in a cell; one that lies in none, by whose time
# an engine may still set its watermark; or no event at all.
COUNTS, BESIDE, NO_EVENT = 0, 1, 2

NEVER = np.iinfo(np.int64).max  # of a moment

# In a column of whole numbers: what a record does not have, or what nobody knows.
NOTHING = -1
NULL = -(1 << 62)  # the value of an event that came out with null: which is no number, and is not nothing


class Kind(StrEnum):
    """What the number of a cell is, which decides what may be said of a wrong one."""

    COUNT = "count"  # how many events: a surplus is a number of events, and no total goes back
    SUM = "sum"  # of signed numbers: it may fall, and a difference is no number of events
    MONOTONE = "monotone"  # of a set of events, and never smaller for a larger set: distinct, or the largest
    PER_EVENT = "per event"  # what came out for one event: there, or not, and right or wrong


@dataclass(frozen=True)
class Value:
    """One of the numbers that a question has in each of its windows."""

    name: str  # in the plural, as in "views"
    kind: Kind


class Places(NamedTuple):
    """Which event lies in which cell: columns of one length. An event has 0 to n places, side by side and in the order
    of the events."""

    row: NDArray[np.intp]  # of the event, in the columns that were asked about
    cell: Ints  # the code
    closes_ms: Ints  # a watermark from here on makes the event too late for the cell; NEVER: none does
    columns: Columns = MappingProxyType({})  # what `Oracle.fold` needs beside the cell


class Totals(NamedTuple):
    """The numbers of some cells: two columns of one length, each cell at most once, in any order. Cells that hold
    nothing are left out."""

    cell: Ints
    value: Ints


class Planned(Protocol):
    """A block of a tape's events, a row each, as the generators plan them. Times are relative to the epoch."""

    @property
    def id(self) -> NDArray[np.uint64]: ...
    @property
    def event_time_rel_ms(self) -> Ints: ...
    @property
    def content(self) -> Columns:
        """What `Codec.draw` gave."""

    @property
    def poison(self) -> NDArray[np.int8]:
        """0: an event; else which kind of poison is sent in its place, up to `Codec.poisons`."""

    def __len__(self) -> int: ...


@dataclass(frozen=True)
class Values:
    """Octets of many records, as a client of Kafka takes them: without an object for each."""

    octets: NDArray[np.uint8]
    begins: Ints  # where each begins in them
    lengths: Ints  # NOTHING: a record without a value

    @classmethod
    def of(cls, values: Sequence[bytes | None]) -> Values:
        missing = [row for row, value in enumerate(values) if value is None] if None in values else []
        held = [value or b"" for value in values]
        lengths = np.fromiter(map(len, held), np.int64, len(held))
        begins = np.cumsum(lengths) - lengths
        lengths[missing] = NOTHING
        return cls(np.frombuffer(b"".join(held), dtype=np.uint8), begins, lengths)

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, row: int) -> bytes | None:
        begin, length = int(self.begins[row]), int(self.lengths[row])
        return None if length == NOTHING else self.octets[begin : begin + length].tobytes()

    def __iter__(self) -> Iterator[bytes | None]:
        octets = self.octets.data
        for begin, length in zip(self.begins.tolist(), self.lengths.tolist(), strict=True):
            yield None if length == NOTHING else bytes(octets[begin : begin + length])

    def rows(self, width: int) -> NDArray[np.bytes_]:
        """Each as a row of this width: a longer one is cut off, a shorter one filled up with zero bytes."""
        octets = self.octets
        if int(self.begins.max(initial=0)) + width > len(octets):
            octets = np.concatenate((octets, np.zeros(width, dtype=np.uint8)))
        anywhere: NDArray[np.void] = np.ndarray((len(octets) - width + 1,), f"V{width}", octets, 0, (1,))
        rows = anywhere[self.begins]
        shortest = max(0, int(self.lengths.min(initial=width)))
        if rest := max(0, width - shortest):
            kept = np.tri(rest + 1, rest, -1, dtype=np.uint8) * np.uint8(255)
            rows.view(np.uint8).reshape(-1, width)[:, shortest:] &= kept[np.clip(self.lengths - shortest, 0, rest)]
        return rows.view(f"S{width}")

    def only(self, rows: slice | Mask) -> Values:
        return Values(self.octets, self.begins[rows], self.lengths[rows])

    def but(self, others: Mapping[int, bytes | None]) -> Values:
        """With other values in some rows."""
        rows, more = list(others), Values.of(list(others.values()))
        begins, lengths = self.begins.copy(), self.lengths.copy()
        begins[rows], lengths[rows] = more.begins + len(self.octets), more.lengths
        return Values(np.concatenate((self.octets, more.octets)), begins, lengths)


class Codec(Protocol):
    """What an event is. Belongs to one tape, so that it knows its seed and its sizes."""

    @property
    def content(self) -> tuple[str, ...]:
        """The names of the columns that `draw` gives, in the order in which a tape is sealed. What a record held is
        compared with what was planned in each of them."""

    @property
    def decisive(self) -> tuple[str, ...]:
        """Those of them that decide, beside the time, which cells an event lies in and what it adds to them."""

    @property
    def poisons(self) -> int:
        """How many kinds of poison there are."""

    def draw(self, draws: Draws, *, probes: Ints | None, hot: Mask, sure: Mask) -> Columns:
        """The content of events, each a pure function of its one raw draw and of what is said beside it: columns of
        whole numbers, all of the same length as `draws`, of fixed types.

        `probes`: these are probes, for the keys with these numbers among the probed ones; None: they are not.
        `hot`: these go to the one key on which a skewed input falls. `sure`: these have to lie in a cell.
        """

    def counts(self, content: Columns) -> Mask:
        """Which events lie in a cell, by their content."""

    @property
    def mark_size(self) -> int:
        """How many marks a group has: so many lie in a cell together. Mostly one does by itself; of a pair two do. 0:
        of many events that were tried none does."""

    def mark(self, mark: Sentinel) -> Mapping[str, int]:
        """The content of an event of the harness' own, one number for each name of `content`. Its group lies in a cell,
        and no two marks of a run with different ids are equal records."""

    def write(self, events: Planned, epoch_ms: int) -> Values:
        """The value of each record, poison included. Its key is the id of the event, and is none of the codec's."""

    def read(self, values: Values, ids: Ints) -> Columns:
        """Records back from the log, whoever wrote them: `kind` (int8), `event_time_ms` (int64, absolute), and a column
        for each name of `content`; more, if the codec wants. `ids` are from the records' keys, NOTHING for a key that
        is none of ours. What is no event is NOTHING in every column but `kind`."""

    def say(self, content: Columns, row: int) -> str:
        """One planned event in a few words, such as "view of ad 17"."""

    def texts(self, log: Columns) -> Mapping[str, Any]:
        """Columns of Arrow: the fields of events in a log, as their records had them; null where one had none."""


class Oracle(Protocol):
    """What is right. Belongs to one run. Made anew for each judgement, because codes are its own."""

    @property
    def codes(self) -> Codes:
        """Makes codes of key and field, and takes them apart."""

    @property
    def values(self) -> tuple[Value, ...]:
        """The numbers that each window has. Keys are numbered value by value: those of `values[0]` first."""

    @property
    def merges(self) -> bool:
        """Whether `fold` joins cells, as sessions do. Then nobody knows which places are a cell's own, and leaving
        an event out makes no bound."""

    @property
    def groups(self) -> int:
        """How many keys each value has, the probed ones included, which are the last ones."""

    @property
    def probed_from(self) -> int:
        """The first of the groups that are probed: their cells are planned to hold one event each. `groups`: none."""

    # The first route: from the plan.

    @property
    def part_ms(self) -> int:
        """The epoch of a run is a multiple of this, so that what `plan` gives holds wherever it will lie."""

    def plan(self, blocks: Iterable[Planned]) -> Columns:
        """What all cells have to hold, by the tape alone: columns of whole numbers, a row a cell (or a part of one)
        with its value in the last column. Sorted by its columns it is sealed and saved as it is. Shares no arithmetic
        with `places` and `fold` where it is written by hand."""

    def settle(self, planned: Columns, epoch_ms: int) -> Totals:
        """The same, now that it is known when the epoch is."""

    # The second route: from the log.

    def places(self, events: Columns) -> Places:
        """The cells of events that count. `events` has `event_id`, `event_time_ms` and the columns `Codec.decisive`,
        from the log or, in absolute times, from the plan."""

    def fold(self, cells: Ints, columns: Columns) -> Totals:
        """What cells hold that have these places and no others: the cell and the columns of each, as `places` gave
        them. Sessions merge here: their cells may get other codes than those of their places."""

    # What a cell is.

    def begins_ms(self, cells: Ints) -> Ints:
        """The earliest time of an event that can lie in each cell; 0 where a code says nothing of a time."""

    def name(self, cell: int, epoch_ms: int) -> str:
        """For people: "campaign 7 (89c0e60b), window 10:00:00 UTC (+10 s)"."""


class Question(Oracle, Protocol):
    """One to which a job may come to change in the middle of a run. `places` finds the events that lie in a cell of it
    among all well-formed ones."""

    @property
    def keys(self) -> Sequence[str]:
        """The names of all keys by their numbers: those of the workload first."""

    @property
    def window_ms(self) -> int: ...


@dataclass(frozen=True)
class Tables:
    """What has to stand in Redis and Kafka before an engine starts; it is ours, and nobody takes it for results."""

    texts: Mapping[str, str] = field(default_factory=dict)  # key -> string
    sets: Mapping[str, Sequence[str]] = field(default_factory=dict)  # key -> members
    hashes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # key -> field -> value
    topics: Mapping[str, Sequence[tuple[bytes, bytes]]] = field(default_factory=dict)  # name -> key and value of each

    @property
    def kinds(self) -> Mapping[str, str]:
        """What Redis calls each key that could be taken for a result."""
        return dict.fromkeys(self.texts, "string") | dict.fromkeys(self.hashes, "hash")


class Results(Protocol):
    """Where a reader finds what is judged. Belongs to one tape."""

    @property
    def keys(self) -> Sequence[str]:
        """The name of each key by its number: of a hash, in our own schema, whose fields are whole numbers."""

    @property
    def parts(self) -> Sequence[Mapping[str, str]]:
        """What each key is made of, by the names that a job's own pattern may use: the texts of the question's keys,
        and the name of the value."""

    @property
    def number(self) -> str:
        """What the whole number of a cell is: "opens", "event_id", or "" where it has none."""

    @property
    def tables(self) -> Tables: ...


class Workload(Protocol):
    """One question; the shipped ones are in workloads/shipped.py."""

    @property
    def id(self) -> str: ...
    @property
    def asks(self) -> str:
        """For people: what is asked, in a few words."""

    @property
    def declaration(self) -> str:
        """Of a declared workload all that it says; "" of one that is written in Python."""

    @property
    def keys(self) -> frozenset[str]:
        """Which keys of a scenario it understands besides those that every workload does: of "campaigns", "probes",
        "checksum" and "window"."""

    def codec(self, tape: TapeSpec) -> Codec: ...
    def oracle(self, spec: RunSpec) -> Oracle: ...
    def results(self, tape: TapeSpec) -> Results: ...
    def length_ms(self, spec: RunSpec) -> int | None:
        """How long each window is; None where they differ, or where no window names a result."""


@runtime_checkable
class Changeable(Protocol):
    """A workload whose jobs can come to answer another question, of the same events."""

    def question(self, spec: RunSpec, asked: Mapping[str, str], codes: Codes) -> Question:
        """`asked`: what is another than before, in the workload's own words; UsageError says what is not understood.
        `codes`: of the question before."""
