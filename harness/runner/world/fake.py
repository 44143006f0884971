"""A simulated world of lists and simulated time: the real tape, bytes and parser, and no process at all."""

from __future__ import annotations

import heapq
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple

import msgspec
import numpy as np

from generators.encode import Encoder
from generators.schedule import Schedule
from harness.engines import fake
from harness.engines.base import Engine
from harness.engines.fake import NEVER_LATE_MS, FakeBatch, FakeEngine
from harness.engines.fake_memory import Event, FakeClock, FakeStore, Log
from harness.engines.job import History
from harness.engines.misbehaviour import AS_BATCH
from harness.evidence.changed_query import asked_of
from harness.faults import registry
from harness.host.cpu_starvation import Machine, Threads
from harness.host.oom_kills import Memory
from harness.judging.questions import keys_of
from harness.kafka_log import recount
from harness.load.adaptive_load import appended
from harness.load.certificate import SENDS, certify
from harness.metering import clock_steps
from harness.metering.clock_steps import Noticing
from harness.model import (
    Certificate,
    Change,
    EngineManifest,
    Expiring,
    FileSeam,
    LoadStatus,
    RunSpec,
    Segment,
    Sentinel,
)
from harness.results.base import HeldFile
from harness.results.redis_scan import Row, soonest, strangers
from harness.results.sampler import Recorder, Sampled, sampled_keys
from harness.rundir.store import Store
from harness.runner.world.base import Spoiled
from harness.runner.world.history_files import Moments, columns_of, seam_of
from harness.util.clock import Reading
from workloads.base import BESIDE, COUNTS, Columns, Values
from workloads.registry import codec_of

CRANK_MS = 50
SLICES_AT_ONCE = 1000  # prepared in one go
READ = ("kind", "campaign", "event_time_ms", "event_id")


class _Record(NamedTuple):
    key: bytes
    value: bytes | None
    event: Event | None  # its parsed bytes


class _Slice(NamedTuple):
    """A slice that is ready to be sent."""

    server: int
    number: int
    lo: int
    hi: int
    partition: int
    due_us: int
    records: list[_Record]


class FakeWorld:
    """See `harness.runner.world.base`: one simulation, which plays all parts but the engine and the fault."""

    field = None

    def __init__(
        self,
        spec: RunSpec,
        store: Store,
        manifest: EngineManifest = fake.MANIFEST,
        clock: FakeClock | None = None,
        *,
        grows: bool = False,
    ) -> None:
        self._spec, self._store, self._manifest = spec, store, manifest
        self._reel, self._grows = Schedule(spec.tape), grows
        self._codec, self._keys = codec_of(spec.tape), keys_of(spec)
        self._known = frozenset(self._keys)
        # An engine that changes its question later also needs the events that it does not count now.
        self._kinds = {COUNTS, BESIDE} if asked_of(spec.fault) else {COUNTS}
        self._clock = clock or FakeClock()
        self._noticing = Noticing(self._reading())
        self._redis = FakeStore()
        self._records: list[list[_Record]] = [[] for _ in range(spec.tape.partitions)]
        self._engine_log: Log = [[] for _ in range(spec.tape.partitions)]
        self._sends: list[tuple[int, ...]] = []
        self._plan: Iterator[_Slice] = iter(())
        self._next: _Slice | None = None
        self._sent = 0
        self._epoch_ms: int | None = None
        self._recorder: Recorder | None = None
        self._writes_seen = -1
        self._strangers: set[str] = set()
        self._newest_batch = -1
        self._misbehave = spec.conf.get("misbehave", "")
        self._history: dict[str, Any] = {}  # its part of an engine's config
        self.engine = self._engine_of(manifest, spec.sink, self._misbehave)
        self._again: FakeEngine | None = None
        self.fault = registry.create(spec, manifest)
        self.clock = self.results = self.fleet = self.log = self.servers = self.host = self

    def _engine_of(
        self, manifest: EngineManifest, sink: str, misbehave: str, made: type[FakeEngine] = FakeEngine
    ) -> FakeEngine:
        spec = self._spec
        return made(
            self._engine_log,
            self._redis,
            self._clock,
            sink=sink,
            window_ms=spec.window_ms,
            watermark_ms=spec.watermark_ms,
            misbehave=misbehave,
            checksum=spec.tape.checksum,
            manifest=manifest,
        )

    def now_ms(self) -> int:
        return self._clock.now_ms

    def pause(self, seconds: float) -> None:
        """Let time pass: due slices are sent, then the engine works."""
        end_ms = self._clock.now_ms + max(CRANK_MS, round(seconds * 1000))
        while self._clock.now_ms < end_ms:
            self._clock.now_ms += CRANK_MS
            self._send_due()
            if self._clock.now_ms % fake.BATCH_MS == 0:
                self._hand_over()
            self.engine.crank()
            if self._again:
                self._again.crank()
            self._compare_clocks()
            self._poll()
            self._write_progress()
        if (reached := self.engine.reached()) and reached.point == "c4":
            time.sleep(0.002)  # the fault's hunter is a real thread: give it a moment

    def _reading(self) -> Reading:
        return Reading(self._clock.now_ms, self._clock.ahead_ms, 0)

    def _compare_clocks(self) -> None:
        for oddity in self._noticing.check(self._reading()):
            clock_steps.tell(self._store, oddity)

    def _write_progress(self) -> None:
        """Write a line per committed batch, like a real engine."""
        newest = self.engine.progress()
        if newest is None or newest.batch == self._newest_batch:
            return
        self._newest_batch = newest.batch
        line = {"at": newest.at_ms, "batch": newest.batch, "rows": newest.rows, "offsets": newest.offsets}
        line |= {"watermark_ms": newest.watermark_ms, "state_cells": newest.state_cells, "commit_ms": newest.commit_ms}
        with (self._store.path / "progress.jsonl").open("ab") as file:
            file.write(msgspec.json.encode(line) + b"\n")

    def open(self) -> None:
        self._encoder = Encoder(self._codec, 0)

    def gather(self) -> None:
        """There are no workers on other hosts."""

    def await_ready(self) -> None:
        """No process has to start."""

    def send(self, marks: Sequence[Sentinel]) -> None:
        for mark in marks:
            self._records[mark.partition] += self._as_records([self._encoder.mark(mark)])

    def go(self, epoch_ms: int) -> None:
        self._epoch_ms = epoch_ms
        self._encoder = Encoder(self._codec, epoch_ms)
        self._go_on(0)

    def extend(self, segments: Sequence[Segment]) -> None:
        first, tape = self._reel.load.slices_settled, appended(self._reel.spec, segments)
        self._reel = Schedule(tape)
        self._go_on(first)

    def complete(self) -> None:
        first, self._grows = self._reel.load.slices_settled, False
        self._go_on(first)

    def _go_on(self, first: int) -> None:
        """Send the slices from this one on, as far as they are decided."""
        until = self._reel.load.slices_settled if self._grows else None
        servers = [self._slices(server, first, until) for server in range(self._reel.servers)]
        self._plan = chain(self._plan, heapq.merge(*servers, key=lambda part: part.due_us))
        self._next = self._next or next(self._plan, None)

    def _slices(self, server: int, first: int, until: int | None) -> Iterator[_Slice]:
        """Yield a server's slices; many are generated and parsed at once."""
        planned = self._reel.slices(server, first, until)
        while group := list(islice(planned, SLICES_AT_ONCE)):
            first, last = group[0][1], group[-1][2]
            events = self._reel.events(server, np.arange(first, last, dtype=np.int64))
            records, partitions = self._as_records(self._encoder.batch(events)), events.partition.tolist()
            for number, lo, hi in group:
                due_us = self._reel.slice_due_us(server, number)
                yield _Slice(server, number, lo, hi, partitions[lo - first], due_us, records[lo - first : hi - first])

    def _as_records(self, messages: Sequence[Mapping[str, bytes | None]]) -> list[_Record]:
        """Convert messages to log records with the event that an engine parses."""
        pairs = [(message["key"] or b"", message["value"]) for message in messages]
        names = self._keys
        keys, values = Values.of([key for key, _ in pairs]), Values.of([value for _, value in pairs])
        columns = recount.parse_records(values, keys, self._codec)
        rows = zip(*(columns[name].tolist() for name in READ), strict=True)
        found = [
            Event(names[key], time_ms, number, value or b"") if kind in self._kinds else None
            for (_, value), (kind, key, time_ms, number) in zip(pairs, rows, strict=True)
        ]
        if len(self._kinds) > 1:
            found = [event and self._told_apart(event, columns, row) for row, event in enumerate(found)]
        return [_Record(key, value, event) for (key, value), event in zip(pairs, found, strict=True)]

    def _told_apart(self, event: Event, columns: Columns, row: int) -> Event:
        """Add the fields for another question: the type, and the ad's key, which follows those of all campaigns."""
        kind, _, _ = self._codec.say(columns, row).partition(" ")
        ad = self._keys[(self._spec.tape.all_campaigns + int(columns["ad"][row])) % len(self._keys)]
        return event._replace(type=kind, ad=ad)

    def _send_due(self) -> None:
        while self._epoch_ms is not None and self._next is not None:
            now_us = (self._clock.now_ms - self._epoch_ms) * 1000
            if self._next.due_us > now_us:
                return
            self._send(self._next, now_us)
            self._next = next(self._plan, None)

    def _send(self, part: _Slice, now_us: int) -> None:
        count = part.hi - part.lo
        self._records[part.partition] += part.records
        self._sent += count
        self._sends.append((part.server, part.number, part.lo, part.hi, part.due_us, now_us, now_us, count, count))

    def _hand_over(self) -> None:
        """Let the engine see the records sent since."""
        for seen, records in zip(self._engine_log, self._records, strict=True):
            seen += [record.event for record in records[len(seen) :]]

    def move_to_files(self, until_ms: int) -> FileSeam:
        self._hand_over()
        moments = Moments(self._spec.tape, until_ms)
        columns = [columns_of([record.value for record in records], self._codec) for records in self._records]
        seam = seam_of(columns, moments, self._spec.seam)
        files = [records[:end] for records, end in zip(self._engine_log, seam.ends, strict=True)]
        for records, begins in zip(self._engine_log, seam.begins, strict=True):
            records[:begins] = [None] * begins
        self._history = {"history": History("", seam), "files": files}
        self.engine.change(self._history)
        return seam

    def count_again(self) -> Engine:
        self._redis.hashes.clear()
        bug = self._misbehave.removeprefix(AS_BATCH) if self._misbehave.startswith(AS_BATCH) else ""
        self._again = self._engine_of(fake.MANIFEST, "absolute", bug, FakeBatch)
        self._again.change({**self._history, "watermark_ms": NEVER_LATE_MS})
        return self._again

    def cpu_s(self, engine: Engine) -> float:
        return engine.ran_ms / 1000 if isinstance(engine, FakeEngine) else 0.0

    def status(self) -> LoadStatus:
        ended = self._epoch_ms is not None and self._next is None and not self._grows
        return LoadStatus(self._sent, self._sent, self._sent, ended)

    def certify(self) -> Certificate:
        names = list(SENDS)
        table = {name: [row[i] for row in self._sends] for i, name in enumerate(names)}
        self._store.write_table("sends.parquet", table)
        return certify(self._store.read_table("sends.parquet"), self._reel.total, self._spec.lag_budget_ms)

    def start_accounting(self) -> None:
        """Do nothing: there is no process to meter."""

    def stop_accounting(self) -> None: ...

    def start_observing(self) -> None:
        if self._manifest.blind:
            return
        self._recorder = Recorder(sampled_keys(self._spec.tape))
        self._poll()

    def stop_observing(self) -> Sampled | None:
        recorder, self._recorder = self._recorder, None
        return recorder.sampled(len(self._keys), 0.0) if recorder else None

    def _poll(self) -> None:
        """Poll the results, like the observer's thread in the real world."""
        at_us = self._clock.now_ms * 1000
        if self._recorder is None:
            return
        if self._redis.writes == self._writes_seen:
            self._recorder.strangers(at_us, self._strangers)
            self._recorder.unchanged(at_us)
            return
        self._writes_seen = self._redis.writes
        names, hashes = self._keys, self._redis.hashes
        self._strangers = strangers(hashes, self._known, fake.MANIFEST.sink(self._spec.sink).bookkeeping)
        self._recorder.strangers(at_us, self._strangers)
        keys = sampled_keys(self._spec.tape)
        self._recorder.record(at_us, [[*chain(*hashes.get(names[c], {}).items())] for c in keys])

    def shows(self, key: int, field: int) -> bool:
        return self._recorder is None or self._recorder.shows(key, field)

    def changes(self, since: int) -> Columns | None:
        return self._recorder.changes(since) if self._recorder else None

    def changed(self) -> Change | None:
        return self._recorder.changed if self._recorder else None

    def threads(self) -> Threads:
        return {(fake.FAKE_PID, 0): (self.engine.ran_ms * 1_000_000, self.engine.waited_ms * 1_000_000)}

    def machine(self) -> Machine:
        """Return a busy one: the engine's CPU accounts decide whether that matters."""
        return Machine(cores=2, load=25.0)

    def free(self) -> Mapping[str, int]:
        return {}

    def memory(self) -> Memory:
        return Memory(1_000_000_000, self.engine.killed_for_memory)

    def ends(self) -> Mapping[int, int]:
        return {partition: len(records) for partition, records in enumerate(self._records)}

    def reachable(self) -> bool:
        return True

    def gone(self) -> str:
        return ""

    def snapshot(self) -> object:
        names = self._keys
        return {name: dict(self._redis.hashes[name]) for name in names if name in self._redis.hashes}

    def rows(self) -> list[Row]:
        return [Row(k, f, v, "hash") for k, fields in sorted(self._redis.hashes.items()) for f, v in fields.items()]

    def expiring(self) -> Expiring | None:
        lives_ms = self._redis.lives_ms
        return soonest({key: ms for key, ms in lives_ms.items() if key in self._redis.hashes})

    def layout(self) -> Sequence[HeldFile]:
        return ()

    def other_databases(self) -> Mapping[int, int]:
        return {}

    def read(self) -> Generator[Mapping[str, Any]]:
        parts = []
        for partition, records in enumerate(self._records):
            values, keys = [r.value for r in records], [r.key for r in records]
            parts.append((partition, values, keys))
        yield recount.columns_of(parts, self._codec)

    def close(self) -> None:
        self.engine.stop()

    def refused(self) -> str:
        return ""

    def spoiled(self) -> Spoiled:
        return Spoiled()

    def stays(self) -> tuple[str, ...]:
        return ()
