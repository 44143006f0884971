"""Read a run back from its directory: its specification, its evidence, and what is derived from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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
from harness.evidence.observed import Doubt, Edits, LogAudit, LogEvents, NamedLate, Observed, State
from harness.evidence.send_index import SentTimes, send_rows
from harness.judging import digests, log_audit, times, verdict_file
from harness.judging.lateness import Countable, CountedLog, Restart, read_again, restarts
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
from harness.rundir.missing_evidence import MissingEvidence
from harness.rundir.store import Store
from harness.rundir.tables import LongTable
from workloads.base import BESIDE, COUNTS, Codec, Columns, Oracle, Question
from workloads.registry import codec_of, length_ms_of, oracle_of
from workloads.totals import InTotals

ROWS_AT_ONCE = 1 << 16
OBSERVED, AFTER_STOP, LOG = "observed.parquet", "observed-after-stop.parquet", "log.parquet"
STATES = "states.parquet"
BACKFILLED, HALF_BACKFILLED = "backfilled.parquet", "backfilled-half.parquet"


class Sealed(msgspec.Struct, frozen=True):
    """A tape as recorded in plan.json."""

    digest: str
    total: int
    duration_ms: int


class Expected(msgspec.Struct, frozen=True):
    """The expectation for all cells, as recorded in plan.json."""

    digest: str


class Plan(msgspec.Struct, frozen=True):
    """The content of plan.json."""

    tape: Sealed
    manifest: EngineManifest
    expected: Expected | None = None  # older versions sealed none
    warm_up: Sealed | None = None  # None: usual
    spec: Any = None  # the content of spec.json; older versions sealed none


class StoredRun:
    """One run directory.

    Each file is read once, at first use. MissingEvidence names a file that is missing, torn, or has unexpected content.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.made: dict[str, Any] = {}  # derived values that several users share

    @classmethod
    def open(cls, path: Path) -> StoredRun:
        """Open a run. Raise UsageError if the folder is none, or comes from a newer program."""
        return cls(Store.open(path))

    # The specification.

    @cached_property
    def spec(self) -> RunSpec:
        return self.store.read_as("spec.json", RunSpec)

    @cached_property
    def plan(self) -> Plan:
        return self.store.read_as("plan.json", Plan)

    @property
    def manifest(self) -> EngineManifest:
        """The engine's manifest at the time of the run."""
        return self.plan.manifest

    @cached_property
    def claim(self) -> SinkClaim:
        """The claim of the sink that the run used."""
        for claim in self.manifest.sinks:
            if claim.name == self.spec.sink:
                return claim
        known = ", ".join(claim.name for claim in self.manifest.sinks) or "none"
        raise MissingEvidence(
            f"{self.store.path / 'spec.json'} names the sink {self.spec.sink!r}, but the manifest in plan.json has "
            f"only {known}"
        )

    @cached_property
    def oracle(self) -> Oracle:
        """One oracle for the whole run, so that equal codes mean equal cells."""
        oracle = oracle_of(self.spec)
        return InTotals(oracle) if self.in_totals else oracle

    @property
    def in_totals(self) -> bool:
        """True if the time at which each event was counted is unknown, so that all windows are judged together."""
        return not times.are_written_down(self.spec.time, self.batch_log)

    @property
    def codec(self) -> Codec:
        return codec_of(self.spec.tape)

    @property
    def keys(self) -> Sequence[str]:
        """The result keys by number."""
        return keys_of(self.spec)

    @cached_property
    def question(self) -> Question | None:
        """The question to which the job changed; None: it did not change, or the change had no effect."""
        return other_question(self.spec, self.oracle.codes) if self.change else None

    @cached_property
    def schedule(self) -> Schedule:
        return Schedule(self.spec.tape)

    @cached_property
    def planned(self) -> Columns:
        """The sealed expectation of every cell."""
        table = self.store.read_table("expected.parquet")
        return {name: table.column(name).to_numpy() for name in table.column_names}

    # The history.

    @cached_property
    def epoch_ms(self) -> int:
        """The load start."""
        return int(self.store.last_value("epoch", "epoch_ms", int))

    @cached_property
    def marks(self) -> tuple[Sentinel, ...]:
        """The sentinel records."""
        return tuple(mark for told in self.store.values("marks", "marks", list[Sentinel]) for mark in told)

    @cached_property
    def certificate(self) -> Certificate:
        return self.store.last_value("certificate", "certificate", Certificate)

    @cached_property
    def engine(self) -> EngineReport:
        return self.store.last_value("engine", "report", EngineReport)

    @cached_property
    def faults(self) -> tuple[FaultReport, ...]:
        return tuple(self.store.values("fault", "report", FaultReport))

    @cached_property
    def checkpoints(self) -> tuple[Checkpoint, ...]:
        """The checkpoints that the engine reported."""
        return tuple(checkpoints.stored(self.store.path / checkpoints.FILE))

    @property
    def change(self) -> FaultReport | None:
        """The fault that changed the engine's question; None: no fault did, or the change had no effect."""
        took = (each for each in self.faults if asked_of(each.spec) and each.landed and not each.refused)
        return next(took, None)

    @cached_property
    def seam(self) -> FileSeam | None:
        """The boundary between older events in files and Kafka; None: there were no files."""
        return next(iter(self.store.values("history", "seam", FileSeam)), None)

    @cached_property
    def unread(self) -> dict[str, str]:
        """The evidence files that were not written because their source could not be read at the end -> the reason."""
        files, reasons = (self.store.values("unread", key, str) for key in ("file", "why"))
        return dict(zip(files, reasons, strict=True))

    # The evidence.

    @cached_property
    def log(self) -> LongTable:
        """The content of the Kafka log."""
        return self.store.open_table(LOG, self.codec.content)

    @cached_property
    def batch_log(self) -> BatchLog | None:
        """The engine's own log of its batches, with the claims of its manifest; None if it keeps none."""
        if not self.store.has("batches.json"):
            return None
        log: BatchLog = replace(self.store.read_as("batches.json", BatchLog), drops_late=self.claim.late == "drop")
        log = replace(log, seam=self.seam)
        if any(self.store.history("anew")):
            note = "The topic was created again, so offsets no longer show which batch read an event."
            return replace(log, batches=(), complete=False, note=note)
        return log

    @cached_property
    def named_late(self) -> NamedLate | None:
        """The events that the engine names as dropped; None if it names none, or keeps late events."""
        path = self.store.path / late.FILE
        if not path.exists() or self.claim.late != "drop":
            return None
        if any(self.store.history("anew")):
            return NamedLate(
                np.empty(0, dtype=np.int64), "the topic was created again, so offsets no longer identify an event"
            )
        told = [line.dropped for line in progress.stored(self.store.path / progress.FILE)]
        behind_ms = (length_ms_of(self.spec) or 0) if self.manifest.window_key == "end" else 0
        return late.stored(path, dropped=max(told, default=0), behind_ms=behind_ms)

    @cached_property
    def sends(self) -> LongTable:
        """The send log."""
        return self.store.open_table("sends.parquet")

    @cached_property
    def sent_times(self) -> SentTimes:
        """When each event was sent."""
        return SentTimes(self.sends, self.epoch_ms)

    @cached_property
    def samples(self) -> pa.Table:
        """The polls of the results during the run."""
        return self.store.read_table("samples.parquet")

    @property
    def rows(self) -> Iterator[Row]:
        """Yield the results as read before the engine was stopped. There may be several for each event."""
        return self._rows(OBSERVED)

    @cached_property
    def has_rows(self) -> bool:
        return any(True for _ in self.rows)

    @cached_property
    def observed(self) -> Observed:
        return self._interpreted(self.rows)

    @cached_property
    def observed_after_stop(self) -> Observed:
        """The results after the stop. Usually they are unchanged, and the first reading is reused."""
        if self.store.read_table(AFTER_STOP).equals(self.store.read_table(OBSERVED)):
            return self.observed
        return self._interpreted(self._rows(AFTER_STOP))

    @cached_property
    def changed_by_stop(self) -> int:
        """How many rows of the second reading differ from the first."""
        if self.store.read_table(AFTER_STOP).equals(self.store.read_table(OBSERVED)):
            return 0
        return unlike(self.rows, self._rows(AFTER_STOP))

    @cached_property
    def states(self) -> tuple[State, ...]:
        """The content of the engine's state at some batches; empty if it could not be read."""
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
        """The report of the batch recount; None: there was none."""
        return next(iter(self.store.values("backfill", "told", Backfill)), None)

    @cached_property
    def backfilled(self) -> Observed:
        """The results of the batch recount."""
        return self._interpreted(self._rows(BACKFILLED))

    @cached_property
    def half_backfilled(self) -> Observed:
        """The results when the batch recount was killed."""
        return self._interpreted(self._rows(HALF_BACKFILLED))

    @cached_property
    def verdict(self) -> Verdict:
        """The latest verdict."""
        return verdict_file.last(self.store)

    # Values derived for the judge, measurements and pages.

    @cached_property
    def edits(self) -> Edits:
        """The files that were changed since the first verdict. This reads every file of the run."""
        return digests.compare(self.store)

    @cached_property
    def audit(self) -> LogAudit:
        """The comparison of the log with the tape."""
        return log_audit.compare(self.schedule, self.epoch_ms, self.log, self.marks)

    @cached_property
    def doubt(self) -> Doubt:
        """The cells whose content in the log is uncertain."""
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
    def counted(self) -> CountedLog:
        """The events for verdict and latency, at the time by which they count."""
        own_time = self.in_totals or self.spec.time == EVENT_TIME
        log = self.log if own_time else times.retimed(self.log.table(), self.spec.time, self.batch_log)
        return CountedLog(
            log,
            self.batch_log,
            self.spec,
            self.oracle,
            self.codec,
            named=self.named_late,
            missing_ms=self.doubt.newest_ms,
            again=self._maybe_counted,
        )

    @property
    def countable(self) -> Countable:
        """All of these events at once."""
        return self.counted.whole

    def _maybe_counted(self, named: LogEvents) -> NDArray[np.bool_]:
        """Select events that the engine named as dropped but may have read again after a restart, and counted."""
        return read_again(named, self.sent_times.of(named.id), self._restarts)

    @cached_property
    def _restarts(self) -> list[Restart]:
        starts_ms = self.store.values("started", "at_ms", int)[1:]
        return restarts(starts_ms, [*progress.stored(self.store.path / progress.FILE)]) if starts_ms else []

    def let_go_of_events(self) -> None:
        """Free the events, which take more memory than everything else. The next access computes them again."""
        self.__dict__.pop("counted", None)

    @cached_property
    def countable_anew(self) -> Countable | None:
        """The events of the whole log that count by the other question."""
        if self.question is None:
            return None
        kinds, newest_ms = (COUNTS, BESIDE), self.doubt.newest_ms
        question, codec = self.question, self.codec
        log = CountedLog(self.log, self.batch_log, self.spec, question, codec, missing_ms=newest_ms, kinds=kinds)
        return log.whole

    def _rows(self, name: str) -> Iterator[Row]:
        for batch in self.store.open_table(name).to_batches(max_chunksize=ROWS_AT_ONCE):
            columns = (batch.column(name).to_pylist() for name in Row._fields)
            yield from map(Row, *columns)

    def _interpreted(self, rows: Iterable[Row]) -> Observed:
        numbers = {key: number for number, key in enumerate(self.keys)}
        seen = interpret(rows, numbers, self.oracle.codes, self.claim.bookkeeping)
        return in_totals(seen, self.oracle) if isinstance(self.oracle, InTotals) else seen
