"""What a check gets to see: values only, put together by harness/judging/judge.py from the files of a run.

Nothing here or in any check reaches for Kafka, Redis, an engine or a workload; a check is a pure function of a Case.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sized
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.evidence.grouping import repeated
from harness.evidence.ledger import Difference, Expectation, Ledger
from harness.evidence.observed import (
    NO_BATCH,
    AfterStop,
    Doubt,
    Edits,
    Glitch,
    LogAudit,
    LogEvents,
    NamedLate,
    Observed,
    State,
    Watched,
    folded,
    picked,
)
from harness.judging.changed import Changed
from harness.model import (
    Backfill,
    BatchLog,
    Certificate,
    CheckResult,
    EngineReport,
    Expiring,
    FaultReport,
    FileSeam,
    Outcome,
    Progress,
    RunSpec,
    Witness,
)
from harness.util.texts import many, when_of_load
from workloads.base import NEVER, NULL, Kind, Oracle

EXAMPLES = 5
NOBODY_LOOKED = "the results were not looked at while the run went on"

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Case:
    """Everything known of one run at the time of judgement."""

    spec: RunSpec
    epoch_ms: int
    oracle: Oracle
    sent: int
    audit: LogAudit
    tape_ledger: Ledger
    log_ledger: Ledger
    events: LogEvents
    batch: NDArray[np.integer[Any]]
    dropped: NDArray[np.bool_]
    permitted: NDArray[np.bool_]
    sent_late: NDArray[np.bool_]
    is_open: NDArray[np.bool_]  # of results that come when a window is closed: nothing has closed its
    expectation: Expectation
    observed: Observed
    drops_late: bool
    final: bool  # a result comes out once, when its window is closed
    in_order: bool  # the sink claims that outputs of a key leave in the order of their events' times
    batch_log: BatchLog | None
    exact: bool  # it is known of every event whether it was dropped
    faults: tuple[FaultReport, ...]
    engine: EngineReport
    certificate: Certificate
    watched: Watched | None
    sent_us: Ints  # when each event was sent, at the earliest; 0: nobody knows
    told: tuple[Progress, ...]  # the engine's own progress
    span_ms: tuple[int, int] | None = None  # the time of the run, by its history and the machine's clock
    behind_ms: int = 0  # by so much the machine's clock, by which the engine tells, was behind the run's at most
    unread: Ledger = field(default_factory=Ledger)  # what a planned fault removed before the engine had done it ...
    unread_at: str = ""  # ... and where it was
    aborted: Ledger = field(default_factory=Ledger)  # what lay in transactions of ours that came to nothing
    after_stop: AfterStop | None = None  # None: a run of an older version, which did not look
    blind: str = ""  # why nobody could look at the results meanwhile; "": somebody could
    doubt: Doubt = field(default_factory=Doubt)  # by record
    edits: Edits = field(default_factory=Edits)
    contradictions: tuple[str, ...] = ()  # between the files of the run, in words
    results_unread: str = ""  # why they could not be read in the end; "": they were ...
    log_unread: str = ""  # ... and why the Kafka log could not
    evicted: str = ""  # that Redis has thrown keys away for want of memory; "": nothing says so
    cut: str = ""  # that somebody else has deleted records of the log
    throttled: str = ""  # that a quota of Kafka's stopped the load: it was not the one that was planned
    states: tuple[State, ...] = ()  # what the engine held at some of its batches
    failed_first: bool = False  # by its first verdict
    states_unread: str = ""  # why that could not be read
    notes: tuple[str, ...] = ()  # what was odd about the engine, and survivable
    waiting: int = 0  # in Kafka when the engine started: a backlog
    change: Changed | None = None  # None: the question stayed the same
    seam: FileSeam | None = None  # None: no older events lay in files
    backfill: Backfill | None = None  # None: no batch counted all once more
    backfilled: Observed | None = None  # what it left; None: it has no answer
    half_backfilled: Observed | None = None  # what stood there when it was killed; None: it was not
    expiring: tuple[Expiring, ...] | None = ()  # None: nobody could look, as in runs of an older version
    retention_ms: int = 0  # for so long the manifest declares results to be kept; 0: for good
    named: NamedLate | None = None  # None: the engine does not name what it dropped

    @property
    def not_read(self) -> str:
        """What could not be read in the end, and why. One service may keep both."""
        whys = {"the results": self.results_unread, "the Kafka log": self.log_unread}
        found = {what: why for what, why in whys.items() if why}
        if len(set(found.values())) == 1:
            return f"{' and '.join(found)} could not be read: {next(iter(found.values()))}"
        return "; ".join(f"{what} could not be read: {why}" for what, why in found.items())

    @property
    def cut_short(self) -> bool:
        """The load was ended early because the engine was gone for good; what is missing was never sent."""
        return self.engine.state != "drained" and self.certificate.sent < self.certificate.intended

    @cached_property
    def doubt_in_all(self) -> Doubt:
        """By record, and where the two routes to the truth differ although the records do not. What was never sent
        because the load was cut short is in the fold of the tape, and in no doubt."""
        difference = self.only(self.tape_ledger - self.log_ledger, {Kind.COUNT})
        short = {cell: by for cell, by in difference.items() if by > 0 and not self.cut_short}
        over = {cell: -by for cell, by in difference.items() if by < 0}
        booked = (self.only(ledger, {Kind.COUNT}) for ledger in (self.doubt.missing, self.doubt.extra))
        missing, extra = (_larger(known, more) for known, more in zip(booked, (short, over), strict=True))
        return Doubt(missing, extra, self.doubt.newest_ms)

    @cached_property
    def allowed(self) -> Expectation:
        """What the engine is held to: what is expected by the log, as far as the log is beyond doubt."""
        return self.doubt_in_all.widened(self.expectation)

    def are(self, cells: Ints, kinds: Collection[Kind]) -> NDArray[np.bool_]:
        """Which of these cells hold a value of such a kind."""
        such = np.array([value.kind in kinds for value in self.oracle.values])
        if such.all():
            return np.ones(len(cells), dtype=np.bool_)
        return np.asarray(such[self.oracle.codes.keys(cells) // self.oracle.groups])

    def only(self, ledger: Ledger, kinds: Collection[Kind]) -> Ledger:
        """The same without the cells of other kinds."""
        if all(value.kind in kinds for value in self.oracle.values):
            return ledger
        such = self.are(ledger.cells, kinds)
        return Ledger(pair for pair, is_such in zip(ledger.items(), such.tolist(), strict=True) if is_such)

    @cached_property
    def differences(self) -> list[Difference]:
        """Results that nobody could read differ from nothing, and a value that is no count is not judged in a cell in
        which tape and log disagree."""
        found = [] if self.results_unread else self.allowed.differences(self.observed.counts)
        return [each for each in found if each.cell not in self.unsure]

    def differences_of(self, kinds: Collection[Kind]) -> list[Difference]:
        such = self.are(np.array([each.cell for each in self.differences], dtype=np.int64), kinds)
        return [each for each, is_such in zip(self.differences, such.tolist(), strict=True) if is_such]

    @cached_property
    def lacking_events(self) -> list[Difference]:
        """Values that are no counts and hold too few because events are missing: so say the counts of their window, or
        nothing counts there. Where all events are counted, such a value is wrong in another way."""
        few = [d for d in self.differences_of({Kind.MONOTONE}) if d.surplus < 0 and d.may > 0]
        if not any(value.kind is Kind.COUNT for value in self.oracle.values):
            return few
        short = {self.window(d.cell) for d in self.differences_of({Kind.COUNT}) if d.surplus < 0}
        return [d for d in few if self.window(d.cell) in short]

    def window(self, cell: int) -> tuple[int, int]:
        """What the cells of all values of one window have in common."""
        return self.oracle.codes.key(cell) % self.oracle.groups, self.oracle.codes.field(cell)

    def beside(self, cell: int, number: int) -> int:
        """The cell of another value of the same window."""
        group, field = self.window(cell)
        return self.oracle.codes.one(number * self.oracle.groups + group, field)

    @cached_property
    def counts_of_event(self) -> int:
        """How often an event counts at most: several times where windows overlap."""
        counted = self.are(self.events.cell, {Kind.COUNT})
        _, times = np.unique(self.events.record[counted], return_counts=True)
        return int(times.max(initial=1))

    def is_empty(self, cell: int) -> bool:
        """Whether no event of the log lies in it that may have been counted. A sum of 0 may hold many."""
        if self.are(np.array([cell]), {Kind.COUNT, Kind.MONOTONE})[0]:
            return not self.allowed.may.count(cell)
        return not (self.oracle.merges and self.allowed.may.count(cell)) and not self.rows_of(cell).any()

    @cached_property
    def unwritten(self) -> list[int]:
        """Cells whose sum is 0 by events that have to be counted, and of which the results say nothing, not even 0."""
        sums = any(value.kind is Kind.SUM for value in self.oracle.values)
        if not sums or self.results_unread or self.log_unread or self.oracle.merges:
            return []
        surely = ~self.dropped & ~self.is_open & (~self.permitted | (self.exact or not self.drops_late))
        cells = np.unique(self.events.cell[surely])
        known = {*self.allowed.may, *self.observed.counts, *self.observed.zeros, *self.unsure}
        return [cell for cell in cells[self.are(cells, {Kind.SUM})].tolist() if cell not in known]

    @cached_property
    def unsure(self) -> frozenset[int]:
        """Cells of values that are no counts, in which tape and log disagree."""
        unlike = {*(self.tape_ledger - self.log_ledger), *self.doubt.missing, *self.doubt.extra}
        codes = np.array([*unlike], dtype=np.int64)
        return frozenset(codes[~self.are(codes, {Kind.COUNT})].tolist())

    @property
    def slack(self) -> int:
        """How many events could be missing unnoticed, and how many values that are no counts are not known. Zero: the
        verdict is to the single event."""
        allowed = Expectation(self._closed(self.allowed.must), self._closed(self.allowed.may))
        must, may = (self.only(ledger, {Kind.COUNT}) for ledger in (allowed.must, allowed.may))
        others = {*allowed.may, *allowed.must} - {*may, *must}
        return Expectation(must, may).slack + sum(
            allowed.must.count(cell) != allowed.may.count(cell) for cell in others
        )

    @property
    def left_out(self) -> list[Difference]:
        """Cells below their maximum that lateness may explain: what is below `must` is lost. Unknown for an engine that
        did not reach the end."""
        return self._below_may if self.engine.state == "drained" else []

    @property
    def complete(self) -> bool:
        """No cell lacks anything that may have come too late: then it does not matter whether the end was reached."""
        return not self._below_may

    @property
    def _below_may(self) -> list[Difference]:
        if self.results_unread or self.log_unread:
            return []
        seen, must, extra = self.observed.counts, self.allowed.must, self.doubt_in_all.extra
        counted = self._closed(self.only(self.expectation.may, {Kind.COUNT}))
        sure = ((cell, may - extra.count(cell)) for cell, may in counted.items())
        held = ((cell, may, max(seen.count(cell), must.count(cell))) for cell, may in sure)
        return [Difference(cell, may, may, count) for cell, may, count in held if count < may]

    def _closed(self, ledger: Ledger) -> Ledger:
        """The same without cells that nothing has closed: they hold events of the harness alone."""
        return _without(ledger, {*self.events.cell[self.is_open].tolist()})

    @property
    def lacking(self) -> list[Difference]:
        """Cells that hold less than they may, for whatever reason."""
        seen, counted = self.observed.counts, self.only(self.allowed.may, {Kind.COUNT})
        return [Difference(cell, may, may, seen.count(cell)) for cell, may in counted.items() if seen.count(cell) < may]

    @property
    def late_dropped(self) -> int:
        """How many events, as far as the engine tells of each, and else by what the cells lack."""
        return self.events.records(self.dropped) if self.exact else -sum(d.surplus for d in self.left_out)

    def fold(self, rows: NDArray[np.bool_]) -> Ledger:
        """What the cells hold that have these events."""
        return folded(self.oracle, self.events, rows)

    @property
    def copies(self) -> NDArray[np.bool_]:
        """Which events were sent before, and are in the log once more: the tape plans some, and each one counts."""
        if not len(repeated(picked(self.events.id, self.events.begins_record))):  # mostly there are none
            return np.zeros(len(self.events), dtype=np.bool_)
        _, first, of_event = np.unique(self.events.id, return_index=True, return_inverse=True)
        record = self.events.record
        return np.asarray(record != record[first][of_event])

    def cell_name(self, cell: int) -> str:
        return self.oracle.name(cell, self.epoch_ms)

    def when(self, at_us: int) -> str:
        return when_of_load(at_us / 1000 - self.epoch_ms, self.spec.tape.load_ms)

    def while_of(self, glitch: Glitch) -> str:
        """For how long it was there, and since when."""
        since = f"from {self.when(glitch.from_us)}"
        if glitch.until_us is None:
            return f"{since} to the last look"
        return f"for {(glitch.until_us - glitch.from_us) / 1e6:.1f} s {since}"

    def glimpsed(self, glitch: Glitch, expected: str) -> Witness:
        """What was seen for a while."""
        from_ms, until_us = glitch.from_us // 1000, glitch.until_us
        until_ms = None if until_us is None else until_us // 1000
        seen = repr(glitch.text)
        return Witness(glitch.where, expected, seen, self.while_of(glitch), from_ms=from_ms, until_ms=until_ms)

    def begins_ms(self, cells: Iterable[int]) -> list[int]:
        """When the window of each cell begins, each moment once and in order."""
        begins: list[int] = np.unique(self.oracle.begins_ms(np.array([*cells], dtype=np.int64))).tolist()
        return begins

    def rows_of(self, cell: int) -> NDArray[np.bool_]:
        return np.asarray((self.events.cell == cell) & ~self.dropped)

    def witness(self, difference: Difference) -> Witness:
        rows = self.rows_of(difference.cell)
        must, may, seen = map(_said, (difference.must, difference.may, difference.seen))
        by = "" if NULL in (difference.must, difference.seen) else f"{difference.surplus:+d}; "
        ids = tuple(f"{int(i):012x}" for i in self.events.id[rows][:EXAMPLES])
        batches = tuple(int(b) for b in np.unique(self.batch[rows]) if b != NO_BATCH)
        touched = f"batches {join(batches)} touched it" if batches else "no batch log says which batches touched it"
        from_ms, until_ms = self.span_of(difference.cell)
        return Witness(
            cell=self.cell_name(difference.cell),
            expected=must if must == may else f"{must} to {may}",
            seen=seen,
            detail=f"{by}{touched}",
            event_ids=ids,
            batches=batches,
            from_ms=from_ms,
            until_ms=until_ms,
        )

    def span_of(self, cell: int) -> tuple[int, int | None]:
        """From when on until when events of a cell come to be counted, the late ones among them."""
        begins_ms = int(self.oracle.begins_ms(np.array([cell], dtype=np.int64))[0])
        closes_ms = self.events.closes_ms[self.events.cell == cell]
        until_ms = int(closes_ms.max()) if len(closes_ms) else begins_ms + self.spec.window_ms
        return begins_ms, None if until_ms == NEVER else until_ms + self.spec.watermark_ms

    def witnesses(self, differences: Iterable[Difference]) -> tuple[Witness, ...]:
        """The largest first: they say most about the cause. Of several values, whose units differ, the largest by its
        share."""
        of_share = len(self.oracle.values) > 1
        shares = {d: abs(d.surplus) / (max(1, d.may) if of_share else 1) for d in differences}
        ranked = sorted(shares, key=lambda d: (-shares[d], -abs(d.surplus), d.cell))
        return tuple(self.witness(d) for d in ranked[:EXAMPLES])

    def events_said(self, count: int, one: str = "", several: str = "") -> str:
        """`3 events are`; where windows overlap, the cells tell how often events count and not how many they are."""
        if self.counts_of_event == 1:
            return many(count, f"event{one}", f"events{several}")
        return many(count, f"count of events{one}", f"counts of events{several}")

    @property
    def in_several(self) -> str:
        """What has to be said beside such a number."""
        return "" if self.counts_of_event == 1 else f" (each event counts in up to {self.counts_of_event:,} cells)"


def _said(value: int) -> str:
    return "null" if value == NULL else str(value)


def _larger(one: Ledger, other: Mapping[int, int]) -> Ledger:
    return Ledger((cell, max(one.count(cell), other.get(cell, 0))) for cell in {*one, *other})


def nobody_looked(name: str, case: Case) -> CheckResult:
    """The answer of a check of what was seen meanwhile, where nothing was. Results that can't be looked at are known
    before a run, so that nothing is claimed of them; otherwise evidence is missing."""
    if case.blind:
        return CheckResult(name, Outcome.PASS, f"not looked for: {case.blind}", asked=False)
    return CheckResult(name, Outcome.UNKNOWN, NOBODY_LOOKED, blame="evidence")


def first_rows(codes: Ints) -> NDArray[np.intp]:
    """The first row of each cell, in order of the rows."""
    return np.sort(np.unique(codes, return_index=True)[1])


def counted(things: Sized, name: str) -> str:
    """`1 result`, `2 results`."""
    return many(len(things), name)


def join(values: Iterable[object], limit: int = 8) -> str:
    """`1, 2, 3 and 14 more`."""
    shown = [str(v) for v in values]
    return ", ".join(shown[:limit]) + (f" and {len(shown) - limit} more" if len(shown) > limit else "")


def _without(ledger: Ledger, cells: Collection[int]) -> Ledger:
    return Ledger(pair for pair in ledger.items() if pair[0] not in cells) if cells else ledger
