"""The other route to the truth: what the Kafka log really holds, and whether that is what the tape had planned.

Reads a topic partition by partition from its beginning to given ends, and parses the bytes of every record: the key
says only which event a record claims to be. `compare` is pure and holds the log against the tape, record by record.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, Message, TopicPartition
from numpy.typing import NDArray

from generators.marks import as_events
from generators.reel import Reel
from harness.judging.ledger import Ledger
from harness.judging.readings import Doubt, LogAudit, Named
from harness.model import INDEX_BITS, INDEX_MASK, HarnessError, KafkaAddress, Mark
from workloads.base import COUNTS, NO_EVENT, Codec, Oracle
from workloads.keys import read_keys
from workloads.registry import codec_of

# A column that the log of a run has only if a planned fault took records out of it: what had become of each by then.
FATE = "fate"
KEPT, DONE, UNREAD = 0, 1, 2  # it is still there; it was removed when the engine had done it; it was removed before

CHUNK = 4000
AUDIT_CHUNK = 32_000
STALL_S = 60.0
EXAMPLES = 20

# Without the first three librdkafka's own queues stall a reader at about a sixth of what it could do.
CONSUMER_SETTINGS: Mapping[str, Any] = {
    "queued.min.messages": 1_000_000,
    "fetch.queue.backoff.ms": 10,
    "fetch.message.max.bytes": 4_000_000,
    "queued.max.messages.kbytes": 262_144,
    # A fetch at the end of one partition would keep the first fetch of the next one waiting for half a second.
    "fetch.wait.max.ms": 10,
    "group.id": "streamgauge-recount",
    "enable.auto.commit": False,
    "auto.offset.reset": "earliest",
    # What a producer has aborted lies in the log and was never said. The end of a partition is told, for the last of it
    # may be such, and then no record comes with which a partition ends.
    "isolation.level": "read_committed",
    "enable.partition.eof": True,
}

Columns = dict[str, NDArray[Any]]
Events = Mapping[str, NDArray[Any]]
Part = tuple[int, NDArray[np.int64], Columns]


def parse_records(values: Sequence[bytes | None], keys: Sequence[bytes | None], codec: Codec) -> Columns:
    """The records as columns, without their place in the log."""
    ids = read_keys(keys)
    return {"event_id": ids, **codec.read(values, ids)}


def columns_of(parts: Iterable[tuple[int, Sequence[bytes | None], Sequence[bytes | None]]], codec: Codec) -> Columns:
    """Whole partitions (number, values, keys) as the columns of log.parquet; offsets count from 0."""
    return _joined(
        [(number, np.arange(len(values)), parse_records(values, keys, codec)) for number, values, keys in parts],
        codec,
    )


def no_records(codec: Codec) -> pa.Table:
    """An empty log."""
    return pa.table(_joined([], codec))


def read(address: KafkaAddress, topic: str, ends: Mapping[int, int], codec: Codec) -> Columns:
    """The whole topic up to the ends, as the columns of log.parquet, ordered by partition and offset."""
    consumer = Consumer({**CONSUMER_SETTINGS, **address.librdkafka, "bootstrap.servers": address.bootstrap})
    with closing(consumer), uncollected():
        parts = [
            (partition, offsets, parse_records(values, keys, codec))
            for partition, end in sorted(ends.items())
            for offsets, values, keys in _read_partition(consumer, topic, partition, end)
        ]
    return _joined(parts, codec)


@contextmanager
def uncollected() -> Iterator[None]:
    """Without the cycle collector, which would walk over all messages again and again, and never find a cycle."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _read_partition(
    consumer: Consumer, topic: str, partition: int, end: int
) -> Iterator[tuple[NDArray[np.int64], list[bytes | None], list[bytes | None]]]:
    """Chunks of records as offsets, values and keys."""
    place = TopicPartition(topic, partition)
    first, _ = consumer.get_watermark_offsets(place, timeout=STALL_S)
    at = first
    consumer.assign([TopicPartition(topic, partition, first)])
    deadline = time.monotonic() + STALL_S
    while at < end:
        messages = consumer.consume(min(CHUNK, end - at), 0.5)
        if messages:
            keys = list(map(Message.key, messages))
            if None in keys:  # what we send has a key, what is no record but an error or the end has none
                _refuse_errors(messages, topic, partition)
            at = _offset(messages[-1]) + (messages[-1].error() is None)  # the end has the offset that comes next
            if None in keys or at > end:
                messages = [message for message in messages if not message.error() and _offset(message) < end]
                keys = list(map(Message.key, messages))
            deadline = time.monotonic() + STALL_S
            if messages:
                yield _offsets(messages), list(map(Message.value, messages)), keys
        elif time.monotonic() > deadline:
            raise HarnessError(
                f"Reading partition {partition} of topic {topic} back stalled for {STALL_S:.0f} s at offset {at:,} of "
                f"{end:,}. The log of Kafka says why; what was read so far is not judged."
            )
    consumer.unassign()


def _refuse_errors(messages: list[Message], topic: str, partition: int) -> None:
    for message in messages:
        if (error := message.error()) and error.code() != KafkaError._PARTITION_EOF:
            raise HarnessError(f"Partition {partition} of topic {topic} can't be read back: {error.str()}.")


def _offsets(messages: list[Message]) -> NDArray[np.int64]:
    """Offsets only grow, so as many as lie between the first and the last are all of them, and need not be asked."""
    first, last = _offset(messages[0]), _offset(messages[-1])
    if last - first + 1 == len(messages):
        return np.arange(first, last + 1, dtype=np.int64)
    return np.array([_offset(message) for message in messages], dtype=np.int64)


def _offset(message: Message) -> int:
    return message.offset() or 0  # a record that was read has one


def _joined(parts: Sequence[Part], codec: Codec) -> Columns:
    """An empty part comes first, so that an empty log has its columns too."""
    parts = [(0, np.arange(0), parse_records([], [], codec)), *parts]
    columns = {
        "partition": np.concatenate([np.full(len(offsets), number, dtype=np.int16) for number, offsets, _ in parts]),
        "offset": np.concatenate([offsets for _, offsets, _ in parts]),
    }
    for name in parts[0][2]:
        columns[name] = np.concatenate([part[name] for _, _, part in parts])
    return columns


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
        for server in self._servers_seen():
            self._audit_server(server, balance)
        for block in self._reel.blocks():
            np.subtract.at(balance, self._reel.places(block.id.astype(np.int64)), 1)
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

    def _servers_seen(self) -> list[int]:
        servers = np.unique(self._ids[self._ids >= 0] >> INDEX_BITS)
        return [int(server) for server in servers if server < self._reel.servers]

    def _audit_server(self, server: int, balance: NDArray[np.int16]) -> None:
        """Draw the server's events anew by the indices that the log names, and look whether they are the same."""
        rows = np.flatnonzero(self._ids >> INDEX_BITS == server)
        index = self._ids[rows] & INDEX_MASK
        rows, index = rows[index < (total := self._reel.server_total(server))], index[index < total]
        for start in range(0, len(rows), AUDIT_CHUNK):
            part = slice(start, start + AUDIT_CHUNK)
            self._audit_rows(server, rows[part], index[part], balance)

    def _audit_rows(
        self, server: int, rows: NDArray[np.intp], index: NDArray[np.int64], balance: NDArray[np.int16]
    ) -> None:
        planned = self._reel.events(server, index)
        own = ~planned.duplicate  # a slot that sends a copy has no event of its own: nobody sent that id
        self._ours[rows] = own
        np.add.at(balance, self._reel.places(self._ids[rows[own]]), 1)
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
