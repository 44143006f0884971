"""All that the ad servers of one process share: what to send, where to, the moment at which time begins, the books.

Knows nothing of Locust. The harness and the fleet speak through files in one folder: `config.json` (what to send, and
where Kafka is), `ready.json` (all servers are up and the topic is known), `go.json` (the epoch, and the run's clock),
`status.jsonl` (a line now and then), and at the end `sends.parquet` and `done.json`. Every file but the status appears
whole, by renaming. A load that is decided while it goes on has its stretches from a journal (generators/journal.py).
"""

from __future__ import annotations

import heapq
import json
import os
from array import array
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

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
# What numpy costs is per call for small slices: so many are made together, as long as they hold few events.
WRITTEN_AT_ONCE = 64
# Less than the harness waits for a fleet that it has told to stop.
HURRIED_FLUSH_S = 8.0
EVENTS_AT_ONCE = 1000
LOOK_EVERY_S = 0.02
CONFIG_DEADLINE_S = 600.0  # longer than the harness waits for Kafka
READY, GO, STATUS, SENDS_FILE, DONE = "ready.json", "go.json", "status.jsonl", "sends.parquet", "done.json"


# A load that waits for CPU isn't open: where it may (root, mostly), its one thread goes before those of its client, and
# before the engine's where the kernel does not deal out the CPU by sessions (there, the harness sees to it).
PRIORITY = -10


def go_first() -> None:
    """The calling thread alone, after the client's threads are there: those poll without rest while a broker is slow to
    answer, and with this priority they would keep it from answering at all."""
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, PRIORITY)


@dataclass(frozen=True)
class LoadConfig:
    """What a load process is told, as one JSON file. May hold secrets: lives in a private folder only."""

    tape: TapeSpec
    client: str
    bootstrap: str
    topic: str
    settings: Mapping[str, Any]
    folder: str
    grows: bool = False  # the profile goes on as the journal says
    metadata_deadline_s: float = 10.0
    flush_deadline_s: float = 150.0  # a broker may be away just then, and takes its time to come back

    @staticmethod
    def read(path: Path) -> LoadConfig:
        """Wait for it: the fleet comes up while Kafka does."""
        what = f"{path}, which says where Kafka is"
        wait_until(path.exists, deadline_s=CONFIG_DEADLINE_S, what=what, every_s=LOOK_EVERY_S)
        return msgspec.json.decode(path.read_bytes(), type=LoadConfig)


@dataclass(frozen=True)
class Slice:
    """One slice, ready to be handed over."""

    server: int
    number: int
    lo: int
    hi: int
    partition: int
    due_us: int
    messages: Batch


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
        self.owes_backlog = config.tape.waits  # before anything else it is sent

    # The life of a server.

    def join(self) -> int:
        """A new server gets its number. The last one makes the fleet ready."""
        number = self._joined
        self._joined += 1
        if self._joined == self.config.tape.senders:
            self.producer.await_topic(self.config.metadata_deadline_s)
            ready = {"servers": self._joined, "nice": os.nice(0)}
            self._write_json(READY, ready)
        return number

    def started(self) -> bool:
        """Whether the harness has said when time begins, and by which clock."""
        path = self.folder / GO
        if self._clock is None and path.exists():
            told = json.loads(path.read_text())
            self._encoder = Encoder(codec_of(self.config.tape), told["epoch_ms"])
            self._clock, self._epoch_us = Clock(told["zero_ns"]), told["epoch_ms"] * 1000
        return self._clock is not None

    def now_us(self) -> int:
        """Since the epoch."""
        if self._clock is None:
            raise RuntimeError("The fleet was asked for the time before the epoch was known.")
        return self._clock.now_us() - self._epoch_us

    def leave(self) -> None:
        self._left += 1

    @property
    def ended(self) -> bool:
        """Every server has sent its last slice."""
        return self._left == self.config.tape.senders

    # Slices.

    def slices(self, server: int) -> Iterator[Slice | None]:
        """All slices of an ad server, written before they are due, and many at once where they are small. None: nothing
        more is known yet."""
        *before, own = self.schedule.servers_of(server)
        for number in () if self.config.tape.waits else before:
            yield from self._all_of(number)
        yield from self._all_of(own)

    def backlog(self) -> Iterator[Slice]:
        """The slices of all servers in the order in which they were due, as a log holds them that nobody has read."""
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
        """Whether all is known that this load will send; and if not, up to which slice nothing can change."""
        if self._journal is None:
            return True, None
        if self._journal.look():
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
        first, last = group[0][1], group[-1][2]  # slices that hold anything follow each other without a gap
        messages = self._encoder.batch(self.schedule.events(server, np.arange(first, last, dtype=np.int64)))
        for number, lo, hi in group:
            partition, due_us = (
                self.schedule.slice_partition(server, number),
                self.schedule.slice_due_us(server, number),
            )
            yield Slice(server, number, lo, hi, partition, due_us, messages[lo - first : hi - first])

    def book(self, part: Slice, sent_us: int, finished_us: int, sent: int) -> None:
        """Keep one row: when the slice was due, begun and handed over, and how many of its records were taken."""
        self.sent += sent
        row = (part.server, part.number, part.lo, part.hi, part.due_us, sent_us, finished_us, sent)
        for column, value in zip(self._books.values(), row, strict=True):
            column.append(value)

    # What the harness gets to see.

    def hurry(self) -> None:
        """From now on what Kafka does not confirm at once counts as not confirmed."""
        self._hurried = True

    def fail(self, words: str) -> None:
        self._errors.append(words)

    def write_status(self) -> None:
        # Numbers that are taken one after the other while sending goes on; the books at the end are exact.
        acked = max(0, self.sent - self.producer.waiting() - self.producer.failures.count)
        now_us = self.now_us() if self._clock else 0
        line = {"intended": self.schedule.due_before(now_us), "sent": self.sent, "acked": acked}
        with (self.folder / STATUS).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line | self._paused) + "\n")

    @property
    def _paused(self) -> dict[str, int]:
        return {"throttled_ms": self.producer.pauses.longest_ms}

    def close(self) -> bool:
        """Wait until every fate is known, write the books, and say whether all is well. Blocks: not in a greenlet."""
        unresolved = self.producer.finish(HURRIED_FLUSH_S if self._hurried else self.config.flush_deadline_s)
        table = self._sends()
        self.write_status()
        _rename_into(self.folder / SENDS_FILE, lambda part: pq.write_table(table, part))
        errors = self._errors + self.producer.failures.sentences()
        sent, acked = (int(np.sum(table.column(name).to_numpy())) for name in ("sent", "acked"))
        done = {
            "intended": self.schedule.total,
            "sent": sent,
            "acked": acked,
            "unresolved": unresolved,
            "errors": errors,
        }
        self._write_json(DONE, done | self._paused)
        return not self._errors

    def _sends(self) -> pa.Table:
        columns = {name: np.frombuffer(column, dtype=np.int64) for name, column in self._books.items()}
        columns["acked"] = columns["sent"] - self._failed_per_slice(columns)
        return pa.table({name: pa.array(columns[name]).cast(kind) for name, kind in SENDS.items()})

    def _failed_per_slice(self, columns: Mapping[str, NDArray[np.int64]]) -> NDArray[np.int64]:
        """A failed record is held against the slice of its event's own slot; for copies the sum is right too."""
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

    def _write_json(self, name: str, value: Mapping[str, Any]) -> None:
        _rename_into(self.folder / name, lambda part: part.write_text(json.dumps(value)))


def _as_many_as(group: list[tuple[int, int, int]], events: int) -> int:
    """How many slices hold no more than so many events; at least one."""
    limit = group[0][1] + events
    return max(1, sum(hi <= limit for _, _, hi in group))


def _rename_into(path: Path, write: Callable[[Path], object]) -> None:
    part = path.with_suffix(".part")
    write(part)
    part.replace(path)
