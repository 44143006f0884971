"""Make a stored run of any size without services, to benchmark judging and measuring.

It has a tape, a log that holds all of it, and the results of an engine that counted each event once, with two seconds
of events in a batch. Judging and measuring it is as much work as for a real run of its size. The engine is the fake
one, which keeps a log of its batches as Spark does, so that the fate of each event is judged too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from generators.encode import Encoder
from generators.schedule import Schedule
from generators.sends import SENDS
from harness.config import plan
from harness.engines import fake, progress
from harness.evidence.ledger import Ledger, seal_of
from harness.judging import digests
from harness.judging.stored_run import AFTER_STOP, LOG, OBSERVED, Expected, Plan, Sealed
from harness.kafka_log import recount
from harness.kafka_log.recount import Columns
from harness.load.certificate import certify
from harness.model import Batch, BatchLog, EngineManifest, EngineReport, RunSpec, Sentinel, SentinelKind
from harness.results.glitches import Glitches
from harness.results.redis_scan import HASH, Row, as_columns
from harness.results.sampler import POLL_EVERY_S, sampled_keys
from harness.rundir.store import Store
from tools.bench.bench_records import EPOCH_MS
from workloads.base import COUNTS, Values
from workloads.registry import oracle_of, results_of
from workloads.sentinels import mark, totals_of

RATE_PER_S = 100_000
BATCH_MS = 2000


def stored_run(folder: Path, events: int) -> Store:
    """Make a run of about so many events, at the rate of a fast engine: more events make it longer."""
    duration = f"{events * 1000 // RATE_PER_S}ms"
    settings = {"engine": fake.FAKE, "rate": RATE_PER_S, "duration": duration, "fault": "none"}
    spec, manifest = plan.resolve("bench", {}, settings, lambda *_: fake.MANIFEST)
    store = Store.create(folder, "bench")
    _Made(spec, manifest, store).all()
    return store


class _Made:
    """The files of a run, made in the order of their dependencies."""

    def __init__(self, spec: RunSpec, manifest: EngineManifest, store: Store) -> None:
        self._spec, self._manifest, self._store = spec, manifest, store
        self._reel, self._oracle = Schedule(spec.tape), oracle_of(spec)
        self._codec = self._reel.load.codec
        self._encoder = Encoder(self._codec, EPOCH_MS)
        self._partitions = range(spec.tape.partitions)
        self._end_ms = EPOCH_MS + -(-self._reel.load.duration_ms // BATCH_MS) * BATCH_MS
        self._batches = range((self._end_ms - EPOCH_MS) // BATCH_MS)
        self._opening = self._marks("opening", 0, EPOCH_MS - spec.window_ms)
        closing_ms = self._end_ms + spec.watermark_ms + spec.window_ms
        self._closing = self._marks("closing", len(self._partitions), closing_ms)
        # By batch: its additions to each cell, its newest event time, and its end in each partition.
        self._added: list[Counter[int]] = [Counter() for _ in self._batches]
        self._newest_ms = [0 for _ in self._batches]
        self._ends: list[dict[int, int]] = [{} for _ in self._batches]

    def all(self) -> None:
        planned = self._plan()
        self._store.write_table("sends.parquet", {name: self._books[name] for name in SENDS})
        self._store.write_parts(LOG, self._log())
        self._engine_tells()
        self._store.write_table("samples.parquet", self._samples())
        self._store.write_table("glitches.parquet", Glitches().columns)
        rows = as_columns(self._results(planned))
        for name in (OBSERVED, AFTER_STOP):
            self._store.write_table(name, rows)
        self._tell()

    def _plan(self) -> Mapping[str, Any]:
        load, planned = self._reel.load, self._oracle.plan(self._reel.sealed_blocks())
        tape, expected = Sealed(load.digest(), load.total, load.duration_ms), Expected(seal_of(planned))
        self._store.write_json("spec.json", self._spec.public())
        self._store.write_json("environment.json", {})
        self._store.write_json("plan.json", Plan(tape, self._manifest, expected, spec=self._spec.public()))
        self._store.write_table("expected.parquet", planned)
        return planned

    def _marks(self, kind: SentinelKind, first: int, time_ms: int) -> tuple[Sentinel, ...]:
        return tuple(mark(first + p, 0, p, time_ms, kind) for p in self._partitions)

    @cached_property
    def _books(self) -> Columns:
        """The sends: every slice was sent when it was due. A column with its partition is added."""
        schedule = self._reel
        slices = [(server, *each) for server in range(schedule.servers) for each in schedule.slices(server)]
        server, number, low, high = np.array(slices, dtype=np.int64).T
        due_us = schedule.slices_due_us(server, number)
        partition = [schedule.slice_partition(*each) for each in zip(server.tolist(), number.tolist(), strict=True)]
        columns = (server, number, low, high, due_us, due_us, due_us, high - low, high - low)
        return {**dict(zip(SENDS, columns, strict=True)), "partition": np.array(partition)}

    def _log(self) -> Iterator[Columns]:
        """Yield the log partition by partition: the opening event, the records of each batch, the closing event."""
        for p in self._partitions:
            taken = (self._taken(batch, p) for batch in self._batches)
            end = 0
            for batch, columns in enumerate(chain([self._marked(self._opening[p])], taken), -1):
                begin, end = end, end + len(columns["event_id"])
                yield _placed(p, begin, columns)
                if batch in self._batches:
                    self._note(batch, p, columns, end)
            yield _placed(p, end, self._marked(self._closing[p]))

    def _marked(self, mark: Sentinel) -> Columns:
        message = self._encoder.mark(mark)
        return recount.parse_records(Values.of([message["value"]]), Values.of([message["key"]]), self._codec)

    def _taken(self, batch: int, partition: int) -> Columns:
        """Return the records of a batch from one partition, slice by slice."""
        books = self._books
        own = (books["partition"] == partition) & ((books["intended_us"] - 1) // (BATCH_MS * 1000) == batch)
        parts, order = [recount.parse_records(Values.of([]), Values.of([]), self._codec)], [np.zeros(0, dtype=np.int64)]
        for server in range(self._reel.servers):
            rows = np.flatnonzero(own & (books["server"] == server))
            spans = [np.arange(books["slot_lo"][row], books["slot_hi"][row]) for row in rows]
            if not spans:
                continue
            events = self._reel.events(server, np.concatenate(spans))
            ids = events.id.astype(np.int64)
            parts.append({"event_id": ids, **self._codec.read(self._encoder.batch(events).values, ids)})
            order.append(np.repeat(books["slice"][rows], [len(span) for span in spans]))
        came = np.argsort(np.concatenate(order), kind="stable")
        return {name: column[came] for name, column in recount.joined(parts).items()}

    def _note(self, batch: int, partition: int, columns: Columns, end: int) -> None:
        counts = columns["kind"] == COUNTS
        cell = self._oracle.places({name: column[counts] for name, column in columns.items()}).cell
        cells, often = np.unique(cell, return_counts=True)
        self._added[batch].update(dict(zip(cells.tolist(), often.tolist(), strict=True)))
        self._newest_ms[batch] = max(self._newest_ms[batch], int(columns["event_time_ms"].max(initial=0)))
        self._ends[batch][partition] = end

    def _batch_log(self) -> tuple[Batch, ...]:
        """Build the batch log. Each batch drops events that are late by the newest time of the batches before.

        The last batch takes the closing events.
        """
        newest_ms = np.maximum.accumulate([EPOCH_MS, *self._newest_ms]).tolist()
        ends = [*self._ends, {p: end + 1 for p, end in self._ends[-1].items()}]
        return tuple(
            Batch(number, by_partition, newest_ms[number] - self._spec.watermark_ms)
            for number, by_partition in enumerate(ends)
        )

    def _done_ms(self, batch: int) -> int:
        return EPOCH_MS + (batch + 1) * BATCH_MS

    def _engine_tells(self) -> None:
        batches = self._batch_log()
        self._store.write_json("batches.json", BatchLog(batches, drops_late=True, complete=True))
        lines = (
            {"at": self._done_ms(each.batch), "batch": each.batch, "rows": 0, "offsets": each.ends} for each in batches
        )
        self._store.write_bytes(progress.FILE, b"".join(msgspec.json.encode(line) + b"\n" for line in lines))

    def _samples(self) -> Columns:
        """Return each count that a batch changed, as seen at the batch's end."""
        seen, codes, sampled = Counter[int](), self._oracle.codes, {*sampled_keys(self._spec.tape)}
        rows: list[tuple[int, int, int, int]] = []
        batches = [(self._done_ms(batch), added) for batch, added in enumerate(self._added)]
        opened, closed = (
            Ledger.of(totals_of(self._oracle, self._codec, marks)) for marks in (self._opening, self._closing)
        )
        for at_ms, added in ((EPOCH_MS, opened), *batches, (self._done_ms(len(self._batches)), closed)):
            seen.update(added)
            at_us = at_ms * 1000
            rows += [(at_us, codes.key(cell), codes.field(cell), seen[cell]) for cell in added]
        columns = np.array([row for row in rows if row[1] in sampled], dtype=np.int64).T
        return dict(zip(("at_us", "campaign", "window_ms", "count"), columns, strict=True))

    def _results(self, planned: Mapping[str, Any]) -> list[Row]:
        marks = totals_of(self._oracle, self._codec, (*self._opening, *self._closing))
        counts = Ledger.of(self._oracle.settle(planned, EPOCH_MS)) + Ledger.of(marks)
        keys, codes = results_of(self._spec.tape).keys, self._oracle.codes
        return [Row(keys[codes.key(cell)], str(codes.field(cell)), str(count), HASH) for cell, count in counts.items()]

    def _tell(self) -> None:
        """Write the history."""
        tell, done_ms = self._store.tell, self._done_ms(len(self._batches))
        certificate = certify(self._store.read_table("sends.parquet"), self._reel.total, self._spec.lag_budget_ms)
        tell("begin", at_ms=EPOCH_MS - 2000)
        tell("marks", at_ms=EPOCH_MS - 2000, marks=self._opening)
        tell("ready", at_ms=EPOCH_MS, after_ms=2000)
        tell("epoch", at_ms=EPOCH_MS, epoch_ms=EPOCH_MS)
        tell("certificate", at_ms=self._end_ms, certificate=certificate)
        tell("marks", at_ms=self._end_ms, marks=self._closing)
        periods = dict.fromkeys(("period_ms", "period_p99_ms", "period_max_ms"), POLL_EVERY_S * 1000)
        tell(
            "observer",
            **periods,
            rows=len(self._store.read_table("samples.parquet")),
            glitches=0,
            wall_s=(done_ms - EPOCH_MS) / 1000,
        )
        tell("engine", at_ms=done_ms, report=EngineReport("drained", "", 0), notes=())
        tell("stopped", at_ms=done_ms, asked=True, error="", changed=0)
        files = digests.of_files(self._store)
        tell(digests.CLOSED, at_ms=done_ms, notes=(), files=files)
        digests.write(self._store, files)


def _placed(partition: int, begin: int, columns: Columns) -> Columns:
    count = len(columns["event_id"])
    return {"partition": np.full(count, partition, dtype=np.int16), "offset": begin + np.arange(count), **columns}
