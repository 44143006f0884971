"""The shared state of all ad servers of one process: what to send, the target, the load start, and the send log.

It does not depend on Locust. The harness and the fleet exchange files (generators/harness_files.py). If the load is
decided during the run, a journal (generators/journal.py) holds its segments.
"""

from __future__ import annotations

import heapq
import os
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from generators import harness_files
from generators.encode import Batch, Encoder
from generators.journal import Journal
from generators.producers import Producer, make_producer
from generators.schedule import Schedule
from generators.sends import SENDS
from harness.model import INDEX_BITS, INDEX_MASK, TapeSpec
from harness.util.clock import Clock
from harness.util.wait import wait_until
from workloads.registry import codec_of

CONFIG_VARIABLE = "STREAMGAUGE_LOAD"
# numpy's overhead is per call, so up to this many small slices are encoded together, if they hold few events.
WRITTEN_AT_ONCE = 64
# Less than the harness waits for a stopped fleet.
HURRIED_FLUSH_S = 8.0
EVENTS_AT_ONCE = 1000
POLL_EVERY_S = 0.02
CONFIG_DEADLINE_S = 600.0  # longer than the harness waits for Kafka


# A load that waits for a CPU is no open loop. If permitted (usually for root), its one thread runs before those of its
# client, and before the engine's if the kernel does not distribute the CPU by sessions (if it does, the harness handles
# this).
PRIORITY = -10


def go_first() -> None:
    """Raise the priority of the calling thread only, after the client has started its threads.

    Those poll without pause while a broker is slow to answer; at this priority they would keep it from answering.
    """
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, PRIORITY)


@dataclass(frozen=True)
class LoadConfig:
    """The settings of a load process, as one JSON file. It may hold secrets: keep it in a private folder only."""

    tape: TapeSpec
    client: str
    bootstrap: str
    topic: str
    settings: Mapping[str, Any]
    folder: str
    grows: bool = False  # the journal extends the profile
    patience: float = 1.0  # factor on the deadlines of a load of several processes
    metadata_deadline_s: float = 10.0
    flush_deadline_s: float = 150.0  # a broker may be down at the end, and needs time to return

    @staticmethod
    def read(path: Path) -> LoadConfig:
        """Wait for the file and read it: the fleet starts while Kafka does."""
        what = f"{path}, which says where Kafka is"
        wait_until(path.exists, deadline_s=CONFIG_DEADLINE_S, what=what, every_s=POLL_EVERY_S)
        return msgspec.json.decode(path.read_bytes(), type=LoadConfig)


@dataclass(frozen=True)
class Slice:
    """One slice, ready to be sent."""

    server: int
    number: int
    lo: int
    hi: int
    partition: int
    due_us: int
    messages: Batch


class Books(NamedTuple):
    """The send log of a process, and what to say of it."""

    sends: pa.Table
    sent: int
    acked: int
    unresolved: int
    throttled_ms: int
    errors: list[str]


class Fleet:
    """The shared state of all ad servers."""

    def __init__(self, config: LoadConfig) -> None:
        self.config = config
        self.schedule = Schedule(config.tape)
        self.folder = Path(config.folder)
        self._journal = Journal(self.folder) if config.grows else None
        self.producer: Producer = make_producer(config.client, config.bootstrap, config.topic, config.settings)
        self._clock: Clock | None = None
        self._epoch_us = 0
        self.sent = 0
        self._encoder: Encoder | None = None
        self._joined = self._left = 0
        self._books = {name: array("q") for name in SENDS if name != "acked"}
        self._errors: list[str] = []
        self._hurried = False
        self.owes_backlog = config.tape.waits  # the backlog is sent before anything else

    # A server, from start to end.

    def join(self) -> int:
        """Register a server and return its number. The last one makes the fleet ready."""
        number = self._joined
        self._joined += 1
        if self._joined == self.config.tape.senders:
            self.producer.await_topic(self.config.metadata_deadline_s)
            harness_files.write_ready(self.folder, self._joined, os.nice(0))
        return number

    def started(self) -> bool:
        """Return True once the harness has set the load start and the clock."""
        if self._clock is None and (told := harness_files.read_go(self.folder)):
            self.begin(*told)
        return self._clock is not None

    def begin(self, epoch_ms: int, zero_ns: int) -> None:
        """Set the load start, and the run's clock: its time at zero of this machine's monotonic clock."""
        self._encoder = Encoder(codec_of(self.config.tape), epoch_ms)
        self._clock, self._epoch_us = Clock(zero_ns), epoch_ms * 1000

    def now_us(self) -> int:
        """Return the time since the load start."""
        if self._clock is None:
            raise RuntimeError("The fleet was asked for the time before the epoch was known.")
        return self._clock.now_us() - self._epoch_us

    def leave(self) -> None:
        self._left += 1

    @property
    def ended(self) -> bool:
        """True after every server of this process has sent its last slice. All of them join before the load starts."""
        return self._clock is not None and self._left == self._joined

    # Slices.

    def slices(self, server: int) -> Iterator[Slice | None]:
        """Yield all slices of an ad server, encoded before they are due, and many at once if they are small.

        None: no further slice is known yet.
        """
        *before, own = self.schedule.servers_of(server)
        for number in () if self.config.tape.waits else before:
            yield from self._all_of(number)
        yield from self._all_of(own)

    def backlog(self) -> Iterator[Slice]:
        """Yield the slices of all servers in due order, as a log holds them that was not read yet."""
        servers = range(self.config.tape.senders, 2 * self.config.tape.senders)
        own = (self._between(server, 0, None) for server in servers)
        yield from heapq.merge(*own, key=lambda part: part.due_us)

    def _all_of(self, server: int) -> Iterator[Slice | None]:
        first, complete = 0, False
        while not complete:
            complete, until = self._settled()
            yield from self._between(server, first, until)
            if not complete:
                if until == first:
                    yield None
                first = until or 0

    def _settled(self) -> tuple[bool, int | None]:
        """Return whether the whole load is known, and if not, the number of slices that can no longer change."""
        if self._journal is None:
            return True, None
        if self._journal.poll():
            tape = self.config.tape
            self.schedule = Schedule(replace(tape, profile=tape.profile + self._journal.profile))
        return self._journal.complete, None if self._journal.complete else self.schedule.load.slices_settled

    def _between(self, server: int, first: int, until: int | None) -> Iterator[Slice]:
        planned = self.schedule.slices(server, first, until)
        while group := list(islice(planned, WRITTEN_AT_ONCE)):
            while group:
                size = _as_many_as(group, EVENTS_AT_ONCE)
                yield from self._written(server, group[:size])
                group = group[size:]

    def _written(self, server: int, group: list[tuple[int, int, int]]) -> Iterator[Slice]:
        if self._encoder is None:
            raise RuntimeError("A slice can't be written before the epoch is known.")
        first, last = group[0][1], group[-1][2]  # slices with events follow each other without a gap
        messages = self._encoder.batch(self.schedule.events(server, np.arange(first, last, dtype=np.int64)))
        for number, lo, hi in group:
            partition, due_us = (
                self.schedule.slice_partition(server, number),
                self.schedule.slice_due_us(server, number),
            )
            yield Slice(server, number, lo, hi, partition, due_us, messages[lo - first : hi - first])

    def book(self, part: Slice, sent_us: int, finished_us: int, sent: int) -> None:
        """Record when the slice was due, begun and handed over, and how many of its records the client took."""
        self.sent += sent
        row = (part.server, part.number, part.lo, part.hi, part.due_us, sent_us, finished_us, sent)
        for column, value in zip(self._books.values(), row, strict=True):
            column.append(value)

    # Reports to the harness.

    def hurry(self) -> None:
        """Shorten the final flush: records that Kafka has not confirmed by its end count as unconfirmed."""
        self._hurried = True

    def fail(self, words: str) -> None:
        self._errors.append(words)

    def backlog_is_sent(self) -> None:
        """Let all servers begin."""
        self.owes_backlog = False

    def status(self) -> dict[str, int]:
        """Return counts that are read one after the other while sending goes on; the send log at the end is exact."""
        acked = max(0, self.sent - self.producer.waiting() - self.producer.failures.count)
        return {"sent": self.sent, "acked": acked, "throttled_ms": self.producer.pauses.longest_ms}

    def write_status(self) -> None:
        intended = self.schedule.due_before(self.now_us() if self._clock else 0)
        harness_files.append_status(self.folder, {"intended": intended, **self.status()})

    def close(self) -> bool:
        """Wait until every record is confirmed or failed, write the send log, and return True if no server failed.

        It blocks: do not call it in a greenlet.
        """
        books = self.finish(HURRIED_FLUSH_S if self._hurried else self.config.flush_deadline_s)
        self.write_status()
        harness_files.write_end(self.folder, books.sends, done_of([books], self.schedule.total))
        return not self._errors

    def finish(self, deadline_s: float) -> Books:
        """Wait until every record is confirmed or failed, and return the send log. It blocks."""
        unresolved = self.producer.finish(deadline_s)
        table = self._sends()
        sent, acked = (int(np.sum(table.column(name).to_numpy())) for name in ("sent", "acked"))
        errors = self._errors + self.producer.failures.sentences()
        return Books(table, sent, acked, unresolved, self.producer.pauses.longest_ms, errors)

    def _sends(self) -> pa.Table:
        columns = {name: np.frombuffer(column, dtype=np.int64) for name, column in self._books.items()}
        columns["acked"] = columns["sent"] - self._failed_per_slice(columns)
        return pa.table({name: pa.array(columns[name]).cast(kind) for name, kind in SENDS.items()})

    def _failed_per_slice(self, columns: Mapping[str, NDArray[np.int64]]) -> NDArray[np.int64]:
        """Count a failed record for the slice of its event's own slot. For copies only the sum over slices is right."""
        failed = np.zeros(len(columns["server"]), dtype=np.int64)
        order = np.lexsort((columns["slot_lo"], columns["server"]))
        starts = (columns["server"] << INDEX_BITS | columns["slot_lo"])[order]
        for key, count in self.producer.failures.by_key.items():
            event = int(key, 16)
            place = int(np.searchsorted(starts, event, side="right")) - 1
            row = order[max(0, place)]
            if columns["server"][row] == event >> INDEX_BITS and event & INDEX_MASK < columns["slot_hi"][row]:
                failed[row] += count
        return failed


def done_of(books: Sequence[Books], intended: int) -> dict[str, Any]:
    """Return the last word on a load of one or more processes."""
    return {
        "intended": intended,
        **{name: sum(getattr(each, name) for each in books) for name in ("sent", "acked", "unresolved")},
        "errors": [error for each in books for error in each.errors],
        "throttled_ms": max((each.throttled_ms for each in books), default=0),
    }


def _as_many_as(group: list[tuple[int, int, int]], events: int) -> int:
    """Return how many slices together hold at most this many events; at least one."""
    limit = group[0][1] + events
    return max(1, sum(hi <= limit for _, _, hi in group))
