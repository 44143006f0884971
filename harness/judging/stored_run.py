"""A run that is read back from its directory: what it was asked, what it left, and what was made of that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from generators.schedule import Schedule
from harness.engines import checkpoints, late, progress
from harness.evidence.changed_query import asked_of
from harness.evidence.observed import Doubt, Edits, LogAudit, NamedLate, Observed, State
from harness.evidence.send_index import send_rows, sent_us
from harness.judging import digests, log_audit, times, verdicts
from harness.judging.lateness import Countable, countable, read_again, restarts
from harness.judging.questions import keys_of, other_question
from harness.model import (
    EVENT_TIME,
    Backfill,
    BatchLog,
    Certificate,
    Checkpoint,
    EngineManifest,
    EngineReport,
    FaultReport,
    FileSeam,
    KeptState,
    RunSpec,
    Sentinel,
    SinkClaim,
    Verdict,
)
from harness.results.redis_scan import HASH, Row, in_totals, interpret, unlike
from harness.rundir.store import LongTable, MissingEvidence, Store
from workloads.base import BESIDE, COUNTS, Codec, Columns, Oracle, Question
from workloads.registry import codec_of, length_ms_of, oracle_of
from workloads.totals import InTotals

OBSERVED, AFTER_STOP, LOG = "observed.parquet", "observed-after-stop.parquet", "log.parquet"
STATES = "states.parquet"
BACKFILLED, HALF_BACKFILLED = "backfilled.parquet", "backfilled-half.parquet"


class Sealed(msgspec.Struct, frozen=True):
    """A tape as plan.json names it."""

    digest: str
    total: int
    duration_ms: int


class Expected(msgspec.Struct, frozen=True):
    """What every cell has to hold, as plan.json names it."""

    digest: str


class Plan(msgspec.Struct, frozen=True):
    """What plan.json holds."""

    tape: Sealed
    manifest: EngineManifest
    expected: Expected | None = None  # older versions sealed none
    warm_up: Sealed | None = None  # there was none, mostly
    spec: Any = None  # all of spec.json; older versions sealed none


class StoredRun:
    """One run directory. A file is read when it is asked for, and once. MissingEvidence names one that is not there,
    is torn, or does not hold what it should."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.made: dict[str, Any] = {}  # of its files, by who needs it more than once

    @classmethod
    def open(cls, path: Path) -> StoredRun:
        """Refused when it is none or comes from a newer program."""
        return cls(Store.open(path))

    # What it was asked.

    @cached_property
    def spec(self) -> RunSpec:
        spec: RunSpec = self.store.read_as("spec.json", RunSpec)
        return spec

    @cached_property
    def plan(self) -> Plan:
        plan: Plan = self.store.read_as("plan.json", Plan)
        return plan

    @property
    def manifest(self) -> EngineManifest:
        """The engine's, as it was then."""
        return self.plan.manifest

    @cached_property
    def claim(self) -> SinkClaim:
        """Of the sink that the run used."""
        for claim in self.manifest.sinks:
            if claim.name == self.spec.sink:
                return claim
        known = ", ".join(claim.name for claim in self.manifest.sinks) or "none"
        raise MissingEvidence(
            f"{self.store.path / 'spec.json'} names the sink {self.spec.sink!r}, which the manifest in plan.json does "
            f"not have (it has: {known})"
        )

    @cached_property
    def oracle(self) -> Oracle:
        """One for all that is said of a run, so that equal codes are equal cells."""
        oracle = oracle_of(self.spec)
        return InTotals(oracle) if self.in_totals else oracle

    @property
    def in_totals(self) -> bool:
        """Nothing says at which time each event was counted, so that all windows are judged together."""
        return not times.are_written_down(self.spec.time, self.batch_log)

    @property
    def codec(self) -> Codec:
        return codec_of(self.spec.tape)

    @property
    def keys(self) -> Sequence[str]:
        """Of the results, by their numbers."""
        return keys_of(self.spec)

    @cached_property
    def question(self) -> Question | None:
        """The other one that its job came to answer; None: it stayed the same, or nothing came of the change."""
        return other_question(self.spec, self.oracle.codes) if self.change else None

    @cached_property
    def schedule(self) -> Schedule:
        return Schedule(self.spec.tape)

    @cached_property
    def planned(self) -> Columns:
        """What every cell has to hold by the plan, as it was sealed."""
        table = self.store.read_table("expected.parquet")
        return {name: table.column(name).to_numpy() for name in table.column_names}

    # What its history says.

    @cached_property
    def epoch_ms(self) -> int:
        """When the load began."""
        return int(self.store.last_value("epoch", "epoch_ms", int))

    @cached_property
    def marks(self) -> tuple[Sentinel, ...]:
        """The events of the harness' own."""
        return tuple(mark for told in self.store.values("marks", "marks", list[Sentinel]) for mark in told)

    @cached_property
    def certificate(self) -> Certificate:
        certificate: Certificate = self.store.last_value("certificate", "certificate", Certificate)
        return certificate

    @cached_property
    def engine(self) -> EngineReport:
        engine: EngineReport = self.store.last_value("engine", "report", EngineReport)
        return engine

    @cached_property
    def faults(self) -> tuple[FaultReport, ...]:
        return tuple(self.store.values("fault", "report", FaultReport))

    @cached_property
    def checkpoints(self) -> tuple[Checkpoint, ...]:
        """Those that the engine told of."""
        return tuple(checkpoints.stored(self.store.path / checkpoints.FILE))

    @property
    def change(self) -> FaultReport | None:
        """The one that gave the engine another question; None: none did, or nothing came of it."""
        took = (each for each in self.faults if asked_of(each.spec) and each.landed and not each.refused)
        return next(took, None)

    @cached_property
    def seam(self) -> FileSeam | None:
        """Where the files of its older events ended; None: there were none."""
        return next(iter(self.store.values("history", "seam", FileSeam)), None)

    @cached_property
    def unread(self) -> dict[str, str]:
        """What it could not read in its end, and so did not write, each with the reason."""
        files, reasons = (self.store.values("unread", key, str) for key in ("file", "why"))
        return dict(zip(files, reasons, strict=True))

    # What it read.

    @cached_property
    def log(self) -> LongTable:
        """What the Kafka log held."""
        return self.store.open_table(LOG, self.codec.content)

    @cached_property
    def batch_log(self) -> BatchLog | None:
        """The engine's own log of its batches, with what its manifest claims; None if it keeps none."""
        if not self.store.has("batches.json"):
            return None
        log: BatchLog = replace(self.store.read_as("batches.json", BatchLog), drops_late=self.claim.late == "drop")
        log = replace(log, seam=self.seam)
        if any(self.store.history("anew")):
            note = "The topic was made anew, so that offsets don't say any more which batch took an event."
            return replace(log, batches=(), complete=False, note=note)
        return log

    @cached_property
    def named_late(self) -> NamedLate | None:
        """What the engine names of what it dropped; None if it names nothing, or keeps what is late."""
        path = self.store.path / late.FILE
        if not path.exists() or self.claim.late != "drop":
            return None
        if any(self.store.history("anew")):
            return NamedLate(np.empty(0, dtype=np.int64), "the topic was made anew, so that places don't name an event")
        told = [line.dropped for line in progress.stored(self.store.path / progress.FILE)]
        behind_ms = (length_ms_of(self.spec) or 0) if self.manifest.window_key == "end" else 0
        return late.stored(path, dropped=max(told, default=0), behind_ms=behind_ms)

    @cached_property
    def sends(self) -> pa.Table:
        """The books of the load."""
        return self.store.read_table("sends.parquet")

    @cached_property
    def samples(self) -> pa.Table:
        """The looks at the results while it went on."""
        return self.store.read_table("samples.parquet")

    @cached_property
    def rows(self) -> list[Row]:
        """The results as they were read while the engine lived."""
        return self._rows(OBSERVED)

    @cached_property
    def observed(self) -> Observed:
        return self._interpreted(self.rows)

    @cached_property
    def observed_after_stop(self) -> Observed:
        """Mostly the stop has changed nothing, and what was read once need not be read again."""
        if self.store.read_table(AFTER_STOP).equals(self.store.read_table(OBSERVED)):
            return self.observed
        return self._interpreted(self._rows(AFTER_STOP))

    @cached_property
    def changed_by_stop(self) -> int:
        """So many rows of the second reading differ from the first one."""
        if self.store.read_table(AFTER_STOP).equals(self.store.read_table(OBSERVED)):
            return 0
        return unlike(self.rows, self._rows(AFTER_STOP))

    @cached_property
    def states(self) -> tuple[State, ...]:
        """What the engine held in its state at some of its batches; none where they could not be read."""
        kept = self.store.values("state", "kept", KeptState)
        if not kept or STATES in self.unread:
            return ()
        table = self.store.read_table(STATES)
        columns = (table.column(name).to_pylist() for name in ("number", "key", "field", "value"))
        rows: dict[int, list[Row]] = {each.number: [] for each in kept}
        for number, key, field, value in zip(*columns, strict=True):
            rows[number].append(Row(key, field, value, HASH))
        return tuple(State(each, self._interpreted(rows[each.number])) for each in kept)

    @cached_property
    def backfill(self) -> Backfill | None:
        """None: there was none."""
        return next(iter(self.store.values("backfill", "told", Backfill)), None)

    @cached_property
    def backfilled(self) -> Observed:
        """What the batch left."""
        return self._interpreted(self._rows(BACKFILLED))

    @cached_property
    def half_backfilled(self) -> Observed:
        """What stood there when the batch was killed."""
        return self._interpreted(self._rows(HALF_BACKFILLED))

    @cached_property
    def verdict(self) -> Verdict:
        """The last one that was given."""
        return verdicts.last(self.store)

    # What is made of that, for whoever judges, measures or draws.

    @cached_property
    def edits(self) -> Edits:
        """Which files were changed since the first verdict: every file of the run is read for it."""
        return digests.compare(self.store)

    @cached_property
    def audit(self) -> LogAudit:
        """The tape against the log."""
        return log_audit.compare(self.schedule, self.epoch_ms, self.log, self.marks)

    @cached_property
    def doubt(self) -> Doubt:
        """Of which cells it is not known what the log held."""
        if not self.audit.wrong:
            return Doubt()
        marks, oracle = self.marks, self.oracle
        return log_audit.doubt(
            self.schedule,
            self.epoch_ms,
            self.log,
            marks,
            oracle=oracle,
            booked=lambda ids: send_rows(self.sends, ids) >= 0,
        )

    @cached_property
    def countable(self) -> Countable:
        """The verdict and the latency rest on the same events, at the time by which they count."""
        own_time = self.in_totals or self.spec.time == EVENT_TIME
        log = self.log if own_time else times.retimed(self.log.table(), self.spec.time, self.batch_log)
        newest_ms, oracle, codec = self.doubt.newest_ms, self.oracle, self.codec
        found = countable(log, self.batch_log, self.spec, oracle, codec, named=self.named_late, missing_ms=newest_ms)
        return found if self.batch_log else replace(found, counted_before=self._maybe_counted(found))

    def _maybe_counted(self, found: Countable) -> NDArray[np.bool_]:
        """Which of the events that an engine named as dropped it may have read again after a restart, and counted."""
        starts_ms = self.store.values("started", "at_ms", int)[1:]
        rows = np.flatnonzero(found.dropped) if starts_ms else np.empty(0, dtype=np.intp)
        result = np.zeros(len(found.events), dtype=np.bool_)
        if len(rows):
            named = found.events.only(rows)
            told = [*progress.stored(self.store.path / progress.FILE)]
            result[rows] = read_again(named, sent_us(self.sends, named.id, self.epoch_ms), restarts(starts_ms, told))
        return result

    def let_go_of_events(self) -> None:
        """They take more room than all else. Whoever asks for them again has them made again."""
        self.__dict__.pop("countable", None)

    @cached_property
    def countable_anew(self) -> Countable | None:
        """The same by the other question, of the whole log."""
        if self.question is None:
            return None
        kinds, newest_ms = (COUNTS, BESIDE), self.doubt.newest_ms
        question, codec = self.question, self.codec
        return countable(self.log, self.batch_log, self.spec, question, codec, missing_ms=newest_ms, kinds=kinds)

    def _rows(self, name: str) -> list[Row]:
        table = self.store.read_table(name)
        columns = (table.column(name).to_pylist() for name in Row._fields)
        return [Row(*values) for values in zip(*columns, strict=True)]

    def _interpreted(self, rows: Sequence[Row]) -> Observed:
        numbers = {key: number for number, key in enumerate(self.keys)}
        seen = interpret(rows, numbers, self.oracle.codes, self.claim.bookkeeping)
        return in_totals(seen, self.oracle) if isinstance(self.oracle, InTotals) else seen
