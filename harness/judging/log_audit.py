"""Compare the Kafka log with the tape, record by record. Pure: the log is given as columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from generators.schedule import Schedule
from harness.evidence.grouping import repeated
from harness.evidence.ledger import Ledger
from harness.evidence.observed import FATE, Doubt, LogAudit, LogTable, Named, parts_of
from harness.judging.record_balance import RecordBalance
from harness.model import INDEX_BITS, INDEX_MASK, MARK_SERVER, Sentinel
from workloads.base import COUNTS, NO_EVENT, Ints, Mask, Oracle
from workloads.registry import codec_of
from workloads.sentinels import as_events

EXAMPLES = 20

Columns = Mapping[str, NDArray[Any]]
Events = Mapping[str, NDArray[Any]]


def compare(schedule: Schedule, epoch_ms: int, log: LogTable, marks: Sequence[Sentinel]) -> LogAudit:
    """Compare the log with the tape and the sentinels: records that are missing, duplicated, foreign, or altered."""
    audit = _Audit(schedule, epoch_ms, marks)
    for columns in parts_of(log):
        audit.add(columns)
    return audit.result(log)


def partly(schedule: Schedule, epoch_ms: int, columns: Columns, marks: Sequence[Sentinel]) -> Findings:
    """Compare some records of the log with the tape and the sentinels. The findings in all of its parts add up."""
    audit = _Audit(schedule, epoch_ms, marks)
    audit.add(columns)
    return audit.findings


def doubt(
    schedule: Schedule,
    epoch_ms: int,
    log: LogTable,
    marks: Sequence[Sentinel],
    *,
    oracle: Oracle,
    booked: Callable[[NDArray[np.int64]], NDArray[np.bool_]],
) -> Doubt:
    """Compute the difference cell by cell.

    `booked` selects the ids of the tape that were sent: only these can have been read.
    """
    return _Audit(schedule, epoch_ms, marks).doubt(log, oracle, booked)


@dataclass(frozen=True)
class _Part:
    """Some rows of the log, with the result of the comparison for each."""

    columns: Columns
    ours: Mask
    altered: Mask
    moved: Mask  # altered in a way that may change their cell

    @classmethod
    def of(cls, columns: Columns) -> _Part:
        return cls(columns, *(np.zeros(len(columns["event_id"]), dtype=np.bool_) for _ in range(3)))

    @property
    def ids(self) -> NDArray[np.int64]:
        return self.columns["event_id"]


class _Wrong:
    """Records with one kind of error: their number, and the first of them."""

    def __init__(self) -> None:
        self._count, self._examples = 0, list[str]()

    def add(self, part: _Part, wrong: Mask) -> None:
        rows = np.flatnonzero(wrong)
        self._count += len(rows)
        for row in rows[: EXAMPLES - len(self._examples)]:
            self._examples.append(f"{_text(int(part.ids[row]))} ({_place(part.columns, row)})")

    def merge(self, later: _Wrong) -> None:
        """Add those of a later part of the log."""
        self._count += later._count
        self._examples = [*self._examples, *later._examples][:EXAMPLES]

    def named(self) -> Named:
        return _named(self._count, self._examples)


class _Unequal:
    """Events that are in the log too seldom, or too often: by how many records, and the first of them."""

    def __init__(self, schedule: Schedule) -> None:
        self._reel = schedule
        self.records, self.ids = 0, list[int]()

    def add(self, places: Ints, times: Ints) -> None:
        self.records += int(times.sum())
        for place in places[times > 0][: EXAMPLES - len(self.ids)].tolist():
            self.ids.append(self._reel.id_at(place))


class Findings:
    """The findings in some records of a log: how often each event is there, and what is not as planned.

    It counts the records of each event of the tape in a bit.
    """

    def __init__(self, total: int, marks: Iterable[int]) -> None:
        self.found = self.removed = 0
        self.foreign, self.altered = _Wrong(), _Wrong()
        self.balance = RecordBalance(total)
        self.often = dict.fromkeys(marks, 0)  # how often each sentinel is in the log

    def add(self, part: _Part) -> None:
        self.found += len(part.ids)
        self.removed += int(np.count_nonzero(part.columns.get(FATE, ())))
        self.foreign.add(part, ~part.ours)
        self.altered.add(part, part.altered)

    def merge(self, later: Findings) -> None:
        """Add the findings in a later part of the same log."""
        self.found += later.found
        self.removed += later.removed
        self.foreign.merge(later.foreign)
        self.altered.merge(later.altered)
        self.balance.merge(later.balance)
        for mark, often in later.often.items():
            self.often[mark] += often

    def marks_in_doubt(self) -> tuple[list[int], list[int]]:
        """Return the sentinels that are missing, and each further record of one."""
        missing = [number for number, often in self.often.items() if not often]
        return missing, [number for number, often in self.often.items() for _ in range(often - 1)]


class _Audit:
    """One comparison, which reads the log once."""

    def __init__(self, schedule: Schedule, epoch_ms: int, marks: Sequence[Sentinel]) -> None:
        self._reel, self._epoch_ms, self._codec = schedule, epoch_ms, codec_of(schedule.spec)
        self._marks = {mark.id: mark for mark in marks}
        self.findings = Findings(schedule.total, self._marks)
        self._again = [np.zeros(0, dtype=np.int64)]  # ids of events with more than one record
        self._foreign_ids = [np.zeros(0, dtype=np.int64)]

    def add(self, columns: Columns) -> _Part:
        """Compare a part of the log."""
        part = _Part.of(columns)
        for server, rows in self._reel.by_server(part.ids):
            self._audit_rows(server, part, rows)
        self._audit_marks(part)
        self.findings.add(part)
        self._foreign_ids.append(part.ids[~part.ours])
        return part

    def _plan(self) -> None:
        """Compare with the plan, after all parts were added."""
        self.findings.balance.plan(*map(self._reel.places, self._reel.copies()))

    def doubt(self, log: LogTable, oracle: Oracle, booked: Callable[[NDArray[np.int64]], NDArray[np.bool_]]) -> Doubt:
        missing, extra = _Tally(oracle), _Tally(oracle)
        moved = [np.zeros(0, dtype=np.int64)]
        for part in map(self.add, parts_of(log)):
            moved.append(part.ids[part.moved])
            kind = part.columns["kind"]
            extra.add(part.columns, (~part.ours | part.moved) & (kind != NO_EVENT), kind == COUNTS)
        self._plan()
        moved_ids = np.unique(np.concatenate(moved))
        missing_marks, doubled_marks = self.findings.marks_in_doubt()
        missing.add(*self._marked([*missing_marks, *(number for number in self._marks if number in moved_ids)]))
        extra.add(*self._marked(doubled_marks))
        for block in self._reel.blocks():
            ids = block.id.astype(np.int64)
            by = self.findings.balance.of(self._reel.places(ids))
            gone = np.maximum(-by, 0) * booked(ids) + np.isin(ids, moved_ids)
            real = ~block.duplicate & (block.poison == 0)
            time_ms = block.event_time_rel_ms + self._epoch_ms
            events = {"event_id": ids, "event_time_ms": time_ms, **block.content}
            counts = self._codec.counts(block.content)
            missing.add(events, gone * real, counts)
            extra.add(events, np.maximum(by, 0) * real, counts)
        return Doubt(missing.ledger, extra.ledger, missing.newest_ms)

    def _marked(self, ids: Sequence[int]) -> tuple[Events, NDArray[np.bool_], NDArray[np.bool_]]:
        """Each sentinel once, and each counts."""
        once = np.ones(len(ids), dtype=np.bool_)
        return as_events(self._codec, [self._marks[number] for number in ids]), once, once

    def result(self, log: LogTable) -> LogAudit:
        self._plan()
        findings, lost, twice = self.findings, _Unequal(self._reel), _Unequal(self._reel)
        for unequal, balance in findings.balance.unequal():
            lost.add(unequal, np.maximum(-balance, 0))
            twice.add(unequal, np.maximum(balance, 0))
        missing_marks, doubled_marks = findings.marks_in_doubt()
        places = self._places_of(log, [*lost.ids, *twice.ids, *doubled_marks])
        missing = [*map(self._mark_named, missing_marks), *(self._planned_at(each, places[each]) for each in lost.ids)]
        doubled = [f"{_text(each)} ({'; '.join(places[each])})" for each in (*doubled_marks, *twice.ids)]
        return LogAudit(
            planned=self._reel.total + len(self._marks),
            found=findings.found,
            missing=_named(len(missing_marks) + lost.records, missing),
            doubled=_named(len(doubled_marks) + twice.records, doubled),
            foreign=findings.foreign.named(),
            altered=findings.altered.named(),
            removed=findings.removed,
            again=np.unique(
                np.concatenate(
                    (*self._again, repeated(np.concatenate(self._foreign_ids)), np.array(doubled_marks, dtype=np.int64))
                )
            ),
        )

    def _audit_rows(self, server: int, part: _Part, rows: NDArray[np.intp]) -> None:
        """Draw the server's events again by the indices that the log names, and compare them."""
        planned = self._reel.events(server, part.ids[rows] & INDEX_MASK)
        own = ~planned.duplicate  # a slot that sends a copy has no event of its own: this id was never sent
        part.ours[rows] = own
        ids = part.ids[rows[own]]
        places = self._reel.places(ids)
        if len(again := self.findings.balance.add(places)):
            self._again.append(ids[np.isin(places, again)])
        real = planned.poison == 0
        time_ms = planned.event_time_rel_ms + self._epoch_ms
        expected = {"event_time_ms": time_ms, **planned.content}
        placed = (part.columns["kind"][rows] != NO_EVENT) == real
        same = placed.copy()
        for name, column in expected.items():
            equal = (part.columns[name][rows] == column) | ~real
            same &= equal
            if name == "event_time_ms" or name in self._codec.decisive:
                placed &= equal
        part.altered[rows] = own & ~same
        part.moved[rows] = own & ~placed

    def _audit_marks(self, part: _Part) -> None:
        """Compare the few sentinel records one by one."""
        for row in np.flatnonzero(part.ids >> INDEX_BITS == MARK_SERVER):
            number = int(part.ids[row])
            if number in self._marks:
                self.findings.often[number] += 1
                part.ours[row] = True
                part.altered[row] = part.moved[row] = not self._is_mark(part.columns, row, self._marks[number])

    def _mark_named(self, number: int) -> str:
        mark = self._marks[number]
        return f"{_text(number)} (the {mark.kind} event of partition {mark.partition})"

    def _is_mark(self, columns: Columns, row: np.intp, mark: Sentinel) -> bool:
        expected = {"event_time_ms": mark.event_time_ms, "partition": mark.partition}
        return all(columns[name][row] == value for name, value in {**expected, **self._codec.mark(mark)}.items())

    def _places_of(self, log: LogTable, ids: Sequence[int]) -> Mapping[int, list[str]]:
        """Find the first offsets at which each of a few records is."""
        places: dict[int, list[str]] = {number: [] for number in ids}
        for columns in parts_of(log.select(["partition", "offset", "event_id"])) if ids else ():
            for row in np.flatnonzero(np.isin(columns["event_id"], ids)):
                found = places[int(columns["event_id"][row])]
                if len(found) < EXAMPLES:
                    found.append(_place(columns, row))
        return places

    def _planned_at(self, number: int, places: Sequence[str]) -> str:
        """Describe where a record should have been; for a missing copy, also where the other one is."""
        server, slot = number >> INDEX_BITS, number & INDEX_MASK
        planned = self._reel.events(server, np.array([slot], dtype=np.int64))
        due = f"partition {planned.partition[0]}, due at {int(planned.intended_us[0]) / 1e6:.3f} s"
        others = "".join(f"; there is one at {index}" for index in places)
        return f"{_text(number)} (slot {slot} of {self._reel.name_of(server)}: {due}{others})"


def _place(columns: Columns, row: np.intp) -> str:
    return f"partition {columns['partition'][row]}, offset {columns['offset'][row]}"


class _Tally:
    """The effect of doubtful events on their cells, and their newest time. Each event has a multiplicity."""

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle
        self.ledger = Ledger()
        self.newest_ms: int | None = None

    def add(self, events: Events, times: NDArray[Any], counts: NDArray[np.bool_]) -> None:
        """Add each event `times` times. Events that do not count may still have made others late."""
        often, time_ms = times.astype(np.int64), events["event_time_ms"]
        if not often.any():
            return
        newest_ms = int(time_ms[often > 0].max())
        self.newest_ms = newest_ms if self.newest_ms is None else max(self.newest_ms, newest_ms)
        rows = np.repeat(np.arange(len(time_ms)), often * counts)
        places = self._oracle.places({name: column[rows] for name, column in events.items()})
        self.ledger += Ledger.of(self._oracle.fold(places.cell, places.columns))


def _text(event_id: int) -> str:
    return f"{event_id:012x}" if event_id >= 0 else "an unknown key"


def _named(count: int, examples: Sequence[str]) -> Named:
    return Named(count, tuple(examples[:EXAMPLES]))
