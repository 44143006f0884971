"""Whether the Kafka log holds what the tape had planned, record by record. Pure: the log is columns by then."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from generators.marks import as_events
from generators.reel import Reel
from harness.judging.ledger import Ledger
from harness.judging.readings import FATE, Doubt, LogAudit, Named
from harness.model import INDEX_BITS, INDEX_MASK, Mark
from workloads.base import COUNTS, NO_EVENT, Oracle
from workloads.registry import codec_of

AUDIT_CHUNK = 32_000
FAR = 8  # times as many ids as there are events: then they are not counted as a range
EXAMPLES = 20

Columns = dict[str, NDArray[Any]]
Events = Mapping[str, NDArray[Any]]


def compare(reel: Reel, epoch_ms: int, log: pa.Table, marks: Sequence[Mark]) -> LogAudit:
    """The tape (and our own marks) against the log: what is missing, too often, not ours, or not as it was sent."""
    return _Audit(reel, epoch_ms, log, marks).result()


def doubt(
    reel: Reel,
    epoch_ms: int,
    log: pa.Table,
    marks: Sequence[Mark],
    *,
    oracle: Oracle,
    booked: Callable[[NDArray[np.int64]], NDArray[np.bool_]],
) -> Doubt:
    """The same, cell by cell. `booked` says of ids of the tape which were sent: only these can have been read."""
    return _Audit(reel, epoch_ms, log, marks).doubt(oracle, booked)


class _Audit:
    """One comparison. Counts per event are one array over all of the tape, of two bytes each."""

    def __init__(self, reel: Reel, epoch_ms: int, log: pa.Table, marks: Sequence[Mark]) -> None:
        self._reel, self._epoch_ms, self._codec = reel, epoch_ms, codec_of(reel.spec)
        self._log: Columns = {name: np.asarray(log.column(name).to_numpy()) for name in log.column_names}
        self._marks = {mark.id: mark for mark in marks}
        self._ids = self._log["event_id"]
        self._ours = np.zeros(len(self._ids), dtype=np.bool_)
        self._altered = np.zeros(len(self._ids), dtype=np.bool_)
        self._moved = np.zeros(len(self._ids), dtype=np.bool_)  # altered so that they may count elsewhere

    def _balance(self) -> NDArray[np.int16]:
        """Records seen less records planned, for each event of the tape in its own order."""
        balance = np.zeros(self._reel.total, dtype=np.int16)
        for server, rows in self._rows_by_server():
            self._audit_server(server, rows, balance)
        for block in self._reel.blocks():
            _count(balance, self._reel, block.id.astype(np.int64), -1)
        return balance

    def doubt(self, oracle: Oracle, booked: Callable[[NDArray[np.int64]], NDArray[np.bool_]]) -> Doubt:
        missing_marks, doubled_marks = self._audit_marks()
        balance = self._balance()
        moved_ids = np.unique(self._ids[self._moved])
        moved_marks = [number for number in self._marks if number in moved_ids]
        missing, extra = _Tally(oracle), _Tally(oracle)
        missing.add(*self._marked([*missing_marks, *moved_marks]))
        extra.add(*self._marked(doubled_marks))
        extra.add(self._log, (~self._ours | self._moved) & (self._log["kind"] != NO_EVENT), self._log["kind"] == COUNTS)
        for block in self._reel.blocks():
            ids = block.id.astype(np.int64)
            by = balance[self._reel.places(ids)].astype(np.int64)
            gone = np.maximum(-by, 0) * booked(ids) + np.isin(ids, moved_ids)
            real = ~block.duplicate & (block.poison == 0)
            time_ms = block.event_time_rel_ms + self._epoch_ms
            events = {"event_id": ids, "event_time_ms": time_ms, **block.content}
            counts = self._codec.counts(block.content)
            missing.add(events, gone * real, counts)
            extra.add(events, np.maximum(by, 0) * real, counts)
        return Doubt(missing.ledger, extra.ledger, missing.newest_ms)

    def _marked(self, ids: Sequence[int]) -> tuple[Events, NDArray[np.bool_], NDArray[np.bool_]]:
        """Each once, and it counts."""
        once = np.ones(len(ids), dtype=np.bool_)
        return as_events(self._codec, [self._marks[number] for number in ids]), once, once

    def result(self) -> LogAudit:
        missing_ids, doubled_ids = self._audit_marks()
        missing_marks = [*map(self._mark_named, missing_ids)]
        doubled_marks = [*map(self._found_at, doubled_ids)]
        balance = self._balance()
        lost, twice = np.flatnonzero(balance < 0), np.flatnonzero(balance > 0)
        missing = [*missing_marks, *map(self._planned_at, lost[:EXAMPLES])]
        doubled = [*doubled_marks, *(self._found_at(self._reel.id_at(int(place))) for place in twice[:EXAMPLES])]
        return LogAudit(
            planned=self._reel.total + len(self._marks),
            found=len(self._ids),
            missing=_named(len(missing_marks) - int(balance[lost].sum(dtype=np.int64)), missing),
            doubled=_named(len(doubled_marks) + int(balance[twice].sum(dtype=np.int64)), doubled),
            foreign=self._places_of(~self._ours),
            altered=self._places_of(self._altered),
            removed=int(np.count_nonzero(self._log[FATE])) if FATE in self._log else 0,
        )

    def _rows_by_server(self) -> Iterator[tuple[int, NDArray[np.intp]]]:
        """The rows of the log that each server of the tape is said to have sent, in their order."""
        servers = self._reel.servers
        server = np.minimum((self._ids >> INDEX_BITS).astype(np.uint64), servers).astype(np.uint16)  # foreign ones last
        order = np.argsort(server, kind="stable")
        ends = np.cumsum(np.bincount(server, minlength=servers + 1))
        for number in range(servers):
            rows = order[ends[number - 1] if number else 0 : ends[number]]
            if len(rows):
                yield number, rows

    def _audit_server(self, server: int, rows: NDArray[np.intp], balance: NDArray[np.int16]) -> None:
        """Draw the server's events anew by the indices that the log names, and look whether they are the same."""
        total = self._reel.server_total(server)
        for start in range(0, len(rows), AUDIT_CHUNK):
            part = rows[start : start + AUDIT_CHUNK]
            index = self._ids[part] & INDEX_MASK
            there = index < total
            self._audit_rows(server, part[there], index[there], balance)

    def _audit_rows(
        self, server: int, rows: NDArray[np.intp], index: NDArray[np.int64], balance: NDArray[np.int16]
    ) -> None:
        planned = self._reel.events(server, index)
        own = ~planned.duplicate  # a slot that sends a copy has no event of its own: nobody sent that id
        self._ours[rows] = own
        _count(balance, self._reel, self._ids[rows[own]], 1)
        real = planned.poison == 0
        time_ms = planned.event_time_rel_ms + self._epoch_ms
        expected = {"event_time_ms": time_ms, **planned.content}
        same = (self._log["kind"][rows] != NO_EVENT) == real
        for name, column in expected.items():
            same &= (self._log[name][rows] == column) | ~real
        self._altered[rows] = own & ~same
        placed = (self._log["kind"][rows] != NO_EVENT) == real
        for name in ("event_time_ms", *self._codec.decisive):
            placed &= (self._log[name][rows] == expected[name]) | ~real
        self._moved[rows] = own & ~placed

    def _audit_marks(self) -> tuple[list[int], list[int]]:
        """Marks are few: one by one."""
        missing: list[int] = []
        doubled: list[int] = []
        for number, mark in self._marks.items():
            rows = np.flatnonzero(self._ids == number)
            self._ours[rows] = True
            self._altered[rows] = self._moved[rows] = ~self._is_mark(rows, mark)
            missing += [number] * (len(rows) == 0)
            doubled += [number] * (len(rows) - 1)
        return missing, doubled

    def _mark_named(self, number: int) -> str:
        mark = self._marks[number]
        return f"{_text(number)} (the {mark.kind} event of partition {mark.partition})"

    def _is_mark(self, rows: NDArray[np.intp], mark: Mark) -> NDArray[np.bool_]:
        place = {"event_time_ms": mark.event_time_ms, "partition": mark.partition}
        expected = {**place, **self._codec.mark(mark)}
        return np.asarray(np.logical_and.reduce([self._log[name][rows] == value for name, value in expected.items()]))

    def _planned_at(self, place: np.intp) -> str:
        """Where a record should have been; of one that was to be sent again, also where the other one is."""
        number = self._reel.id_at(int(place))
        server, slot = number >> INDEX_BITS, number & INDEX_MASK
        planned = self._reel.events(server, np.array([slot], dtype=np.int64))
        due = f"partition {planned.partition[0]}, due at {int(planned.intended_us[0]) / 1e6:.3f} s"
        others = "".join(
            f"; there is one at {self._place(row)}" for row in np.flatnonzero(self._ids == number)[:EXAMPLES]
        )
        return f"{_text(number)} (slot {slot} of {self._reel.name_of(server)}: {due}{others})"

    def _found_at(self, number: int) -> str:
        """All places at which a record is."""
        return f"{_text(number)} ({'; '.join(map(self._place, np.flatnonzero(self._ids == number)[:EXAMPLES]))})"

    def _places_of(self, wrong: NDArray[np.bool_]) -> Named:
        rows = np.flatnonzero(wrong)
        return _named(len(rows), [f"{_text(int(self._ids[row]))} ({self._place(row)})" for row in rows[:EXAMPLES]])

    def _place(self, row: np.intp) -> str:
        return f"partition {self._log['partition'][row]}, offset {self._log['offset'][row]}"


def _count(balance: NDArray[np.int16], reel: Reel, ids: NDArray[np.int64], each: int) -> None:
    """So many more for each of these events of one server. They lie near to each other, but for what came much
    later."""
    if not len(ids):
        return
    first = ids.min()
    if ids.max() - first > FAR * len(ids):
        np.add.at(balance, reel.places(ids), each)
        return
    often = np.bincount(ids - first)
    seen = np.flatnonzero(often)
    balance[reel.places(first + seen)] += (each * often[seen]).astype(np.int16)


class _Tally:
    """Events that are in doubt, each as often as it is: what they make of their cells, and the newest time of all."""

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle
        self.ledger = Ledger()
        self.newest_ms: int | None = None

    def add(self, events: Events, times: NDArray[Any], counts: NDArray[np.bool_]) -> None:
        """Each so many times; those that do not count may still have made others late."""
        often, time_ms = times.astype(np.int64), events["event_time_ms"]
        if not often.any():
            return
        newest_ms = int(time_ms[often > 0].max())
        self.newest_ms = newest_ms if self.newest_ms is None else max(self.newest_ms, newest_ms)
        rows = np.repeat(np.arange(len(time_ms)), often * counts)
        places = self._oracle.places({name: column[rows] for name, column in events.items()})
        self.ledger += Ledger.of(self._oracle.fold(places.cell, places.columns))


def _text(event_id: int) -> str:
    return f"{event_id:012x}" if event_id >= 0 else "a key that is none of ours"


def _named(count: int, examples: Sequence[str]) -> Named:
    return Named(count, tuple(examples[:EXAMPLES]))
