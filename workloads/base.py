"""The interface of a workload, which is one question to an engine. Protocols only, as small as their callers allow.

A workload has three parts. The *codec* defines events: how they are drawn, written as records, and read back. The
*oracle* defines the right answer: the cells of each event, and the value of each cell. The *results* define where the
answer is read: the names of keys, and the tables that the services need before an engine starts.

**Columns.** Many events or cells are a mapping of names to numpy columns of one length, with a row for each.

**Cells.** A cell holds one number. Its *code* is an int64 (workloads/cells.py): the number of its key in the upper bits
(`Results.keys` has the names), and the number of its field in the lower bits, mostly the start of a window in absolute
ms. A question with two values in each window, such as a count and a sum, has two cells there, with two keys.

**Lateness** is decided for each event and cell: an event that is too late for one sliding window may be in time for the
next. Therefore verdicts are about *places*, pairs of an event and a cell that it belongs to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from harness.model import RunSpec, Sentinel, TapeSpec
from workloads.cells import Codes

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
Draws = NDArray[np.uint64]
Columns = Mapping[str, NDArray[Any]]

# Kinds of log records, in the column `kind`: an event that belongs to a cell; an event that belongs to none, but whose
# time may advance an engine's watermark; no event at all.
COUNTS, BESIDE, NO_EVENT = 0, 1, 2

NEVER = np.iinfo(np.int64).max  # as a moment

# In a column of whole numbers: a field that the record lacks, or an unknown value.
NOTHING = -1
NULL = -(1 << 62)  # the value of an event whose result was null, as opposed to no result


class Kind(StrEnum):
    """The meaning of a cell's number. It decides which claims about a wrong number are possible."""

    COUNT = "count"  # a number of events: a surplus counts events, and totals never fall
    SUM = "sum"  # a sum of signed numbers: it may fall, and a difference is no number of events
    MONOTONE = "monotone"  # never falls when the set of events grows: distinct, or the largest
    PER_EVENT = "per event"  # the output for one event: present or absent, right or wrong
    RANKED = "ranked"  # a place among others, or what it is given for; nothing for a cell without a place
    MATCH = "match"  # 1 for an event that completes a match, which depends on other events; nothing for any other one


FINAL = frozenset({Kind.PER_EVENT, Kind.MATCH})  # an answer leaves once, when the watermark has passed its event
MAY_FALL = frozenset({Kind.SUM, Kind.RANKED})  # such a number does not show when an event became visible


@dataclass(frozen=True)
class Value:
    """A value that a question has in each of its windows."""

    name: str  # in the plural, as in "views"
    kind: Kind


class Places(NamedTuple):
    """The cells of events: columns of one length. An event has 0 to n places, adjacent and in the order of the
    events.
    """

    row: NDArray[np.intp]  # of the event, in the given columns
    cell: Ints  # the code
    closes_ms: Ints  # from this watermark on the event is too late for the cell; NEVER: it is never too late
    columns: Columns = MappingProxyType({})  # further input of `Oracle.fold`


class Totals(NamedTuple):
    """The values of some cells: two columns of one length, each cell at most once, in any order. Empty cells are left
    out.
    """

    cell: Ints
    value: Ints


class Planned(Protocol):
    """A block of a tape's events, one per row. Times are relative to the load start."""

    @property
    def id(self) -> NDArray[np.uint64]: ...
    @property
    def event_time_rel_ms(self) -> Ints: ...
    @property
    def content(self) -> Columns:
        """The columns from `Codec.draw`."""

    @property
    def poison(self) -> NDArray[np.int8]:
        """0: an event; else the number of the poison that is sent in its place, up to `Codec.poisons`."""

    def __len__(self) -> int: ...


@dataclass(frozen=True)
class Values:
    """The bytes of many records in the form that a Kafka client takes, without an object for each."""

    octets: NDArray[np.uint8]
    begins: Ints  # the index of each record in `octets`
    lengths: Ints  # NOTHING: a record without a value

    @classmethod
    def of(cls, values: Sequence[bytes | None]) -> Values:
        missing = [row for row, value in enumerate(values) if value is None] if None in values else []
        held = [value or b"" for value in values] if missing else cast("Sequence[bytes]", values)
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
        """Return each value as a row of this width, truncated or padded with zero bytes."""
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
        """Return a copy with other values in some rows."""
        rows, more = list(others), Values.of(list(others.values()))
        begins, lengths = self.begins.copy(), self.lengths.copy()
        begins[rows], lengths[rows] = more.begins + len(self.octets), more.lengths
        return Values(np.concatenate((self.octets, more.octets)), begins, lengths)


class Codec(Protocol):
    """The definition of an event. A codec belongs to one tape, thus it knows the tape's seed and sizes."""

    @property
    def content(self) -> tuple[str, ...]:
        """The names of the columns from `draw`, in the order in which a tape is sealed. Records are compared with the
        plan in each of them.
        """

    @property
    def decisive(self) -> tuple[str, ...]:
        """The columns that decide, with the time, which cells an event belongs to and what it adds to them."""

    @property
    def poisons(self) -> int:
        """The number of kinds of poison."""

    def draw(self, draws: Draws, *, probes: Ints | None, hot: Mask, sure: Mask) -> Columns:
        """Return the content of events: columns of whole numbers with fixed types, as long as `draws`. Each event is a
        pure function of its raw draw and of its row of the arguments.

        `probes`: the events are probes for the keys with these numbers among the probed ones; None: they are no probes.
        `hot`: these events get the one key that a skewed input prefers. `sure`: these events must belong to a cell.
        """

    def counts(self, content: Columns) -> Mask:
        """Return which events belong to a cell, judged by their content."""

    @property
    def mark_size(self) -> int:
        """The number of sentinel records in a group, which share a cell. Mostly 1; 2 if a cell needs a pair of events.
        0: none of many tried events has a cell.
        """

    def mark(self, mark: Sentinel) -> Mapping[str, int]:
        """Return the content of a sentinel record, one number for each name of `content`. Its group belongs to a cell,
        and no two sentinel records of a run with different ids are equal.
        """

    def write(self, events: Planned, epoch_ms: int) -> Values:
        """Return the value of each record, poison included. The key of a record is the id of its event, and is not made
        by the codec.
        """

    def read(self, values: Values, ids: Ints) -> Columns:
        """Read records from the log, which may be from any writer. Return the columns `kind` (int8), `event_time_ms`
        (int64, absolute), one for each name of `content`, and more if the codec wants. `ids` are from the records'
        keys, NOTHING for a foreign key. A record that is no event has NOTHING in every column but `kind`.
        """

    def say(self, content: Columns, row: int) -> str:
        """Describe a planned event in a few words, such as "view of ad 17"."""

    def texts(self, log: Columns) -> Mapping[str, Any]:
        """Return Arrow columns with the fields of a log's events as their records had them; null where a record had
        none.
        """


class Oracle(Protocol):
    """The right answer. It belongs to one run and is made anew for each judgement, because its codes are its own."""

    @property
    def codes(self) -> Codes:
        """The encoder of keys and fields as codes."""

    @property
    def values(self) -> tuple[Value, ...]:
        """The values of each window. Keys are numbered value by value, those of `values[0]` first."""

    @property
    def merges(self) -> bool:
        """True if `fold` joins cells, as sessions do. Then no place belongs to a known cell, and leaving out an event
        gives no bound.
        """

    @property
    def keeps_rows(self) -> bool:
        """True if `places` keeps what `fold` needs. Then it is asked once for each event."""

    @property
    def groups(self) -> int:
        """The number of keys of each value, including the probed ones, which are last."""

    @property
    def probed_from(self) -> int:
        """The first probed group. Cells of probed groups are planned to hold one event each. Equal to `groups` if none
        is probed.
        """

    # The first route: from the plan.

    @property
    def part_ms(self) -> int:
        """The load start of a run is a multiple of this, so that the result of `plan` holds for any load start."""

    def plan(self, blocks: Iterable[Planned]) -> Columns:
        """Return the expected content of all cells from the tape alone: columns of whole numbers, a row for each cell
        or part of one, with its value in the last column. Sorted by its columns it is sealed and saved as it is. A
        hand-written one shares no arithmetic with `places` and `fold`.
        """

    def settle(self, planned: Columns, epoch_ms: int) -> Totals:
        """Turn the planned content into totals, once the load start is known."""

    # The second route: from the log.

    def places(self, events: Columns) -> Places:
        """Return the cells of events that count. `events` has `event_id`, `event_time_ms` and the columns of
        `Codec.decisive`, from the log or, in absolute times, from the plan.
        """

    def fold(self, cells: Ints, columns: Columns) -> Totals:
        """Return the values of cells that have exactly these places: the cell and the columns of each, as `places`
        returned them. Sessions merge here: merged cells may have other codes than their places.
        """

    # What a cell is.

    def begins_ms(self, cells: Ints) -> Ints:
        """Return the earliest time of an event in each cell; 0 where a code contains no time."""

    def name(self, cell: int, epoch_ms: int) -> str:
        """Write a cell for people: "campaign 7 (89c0e60b), window 10:00:00 UTC (+10 s)"."""


class Question(Oracle, Protocol):
    """A question to which a job may be changed during a run. `places` finds its events among all well-formed ones."""

    @property
    def keys(self) -> Sequence[str]:
        """The names of all keys by their numbers, the workload's own keys first."""

    @property
    def window_ms(self) -> int: ...


@dataclass(frozen=True)
class Tables:
    """The content that Redis and Kafka need before an engine starts. The harness writes it, thus it is never read as
    results.
    """

    texts: Mapping[str, str] = field(default_factory=dict)  # key -> string
    sets: Mapping[str, Sequence[str]] = field(default_factory=dict)  # key -> members
    hashes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # key -> field -> value
    topics: Mapping[str, Sequence[tuple[bytes, bytes]]] = field(
        default_factory=dict
    )  # name -> key and value of each record

    @property
    def kinds(self) -> Mapping[str, str]:
        """The Redis type of each key that could be mistaken for a result."""
        return dict.fromkeys(self.texts, "string") | dict.fromkeys(self.hashes, "hash")


class Results(Protocol):
    """The place where the judged results are read. It belongs to one tape."""

    @property
    def keys(self) -> Sequence[str]:
        """The name of each key by its number. In our own schema it is a hash with whole numbers as fields."""

    @property
    def parts(self) -> Sequence[Mapping[str, str]]:
        """The parts of each key by the names that a job's own pattern may use: the texts of the question's keys, and
        the name of the value.
        """

    @property
    def number(self) -> str:
        """The meaning of the whole number of a cell: "opens", "event_id", or "" if it has none."""

    @property
    def tables(self) -> Tables: ...


class Workload(Protocol):
    """One question. The shipped workloads are in workloads/shipped.py."""

    @property
    def id(self) -> str: ...
    @property
    def asks(self) -> str:
        """The question in a few words, for people."""

    @property
    def declaration(self) -> str:
        """The whole declaration of a declared workload; "" for a workload in Python."""

    @property
    def keys(self) -> frozenset[str]:
        """The keys of a scenario that it supports besides those of every workload: some of "campaigns", "probes",
        "checksum" and "window".
        """

    def codec(self, tape: TapeSpec) -> Codec: ...
    def oracle(self, spec: RunSpec) -> Oracle: ...
    def results(self, tape: TapeSpec) -> Results: ...
    def length_ms(self, spec: RunSpec) -> int | None:
        """Return the length of each window; None if lengths differ, or if no window names a result."""


@runtime_checkable
class Changeable(Protocol):
    """A workload whose jobs can be changed to another question about the same events."""

    def question(self, spec: RunSpec, asked: Mapping[str, str], codes: Codes) -> Question:
        """Return the changed question. `asked` has the changes in the workload's own words; raises UsageError for an
        unknown one. `codes` are those of the original question.
        """
