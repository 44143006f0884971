"""The input of a check: values only, built by harness/judging/judge.py from the files of a run.

Neither this module nor any check accesses Kafka, Redis, an engine or a workload.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sized
from dataclasses import dataclass, field
from functools import cached_property
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
)
from harness.judging.census import Census, census_of
from harness.judging.changed import Changed
from harness.judging.judged import JudgedLog
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
from workloads.base import NEVER, NULL, Kind, Mask, Oracle

EXAMPLES = 5
NOBODY_LOOKED = "the results were not polled during the run"

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class RunFacts:
    """Everything known about one run when it is judged."""

    spec: RunSpec
    epoch_ms: int
    oracle: Oracle
    sent: int
    audit: LogAudit
    tape_ledger: Ledger
    log_ledger: Ledger
    judged: JudgedLog  # the events that count
    expectation: Expectation
    observed: Observed
    drops_late: bool
    final: bool  # a result is written once, when its window is closed
    shows_a_step_later: bool  # what a step of progress wrote may become visible with the next step
    in_order: bool  # the sink claims that outputs of a key leave in order of their events' times
    whole_batches: bool  # ... and that a reader sees the outputs of a batch all at once
    batch_log: BatchLog | None
    exact: bool  # it is known for every event whether it was dropped
    faults: tuple[FaultReport, ...]
    engine: EngineReport
    certificate: Certificate
    watched: Watched | None
    told: tuple[Progress, ...]  # the engine's own progress lines
    span_ms: tuple[int, int] | None = None  # the time of the run, by its history and the machine's clock
    behind_ms: int = 0  # the most by which the machine's clock, which the engine uses, was behind the run's
    unread: Ledger = field(default_factory=Ledger)  # removed by a planned fault before the engine had processed it ...
    unread_at: str = ""  # ... and where it was
    aborted: Ledger = field(default_factory=Ledger)  # sent in our own transactions that were aborted
    after_stop: AfterStop | None = None  # None: a run of an older version, which did not read again
    blind: str = ""  # why the results could not be polled; "": they could
    doubt: Doubt = field(default_factory=Doubt)  # by record
    edits: Edits = field(default_factory=Edits)
    contradictions: tuple[str, ...] = ()  # between the files of the run, in words
    results_unread: str = ""  # why they could not be read at the end; "": they were ...
    log_unread: str = ""  # ... and why the Kafka log could not
    evicted: str = ""  # that Redis evicted keys for lack of memory; "": no sign of it
    cut: str = ""  # that another client deleted records of the log
    throttled: str = ""  # that a quota of Kafka stopped the load, so that it was not the planned one
    states: tuple[State, ...] = ()  # the engine's state after some batches
    failed_first: bool = False  # by its first verdict
    states_unread: str = ""  # why that could not be read
    notes: tuple[str, ...] = ()  # oddities of the engine that cost no verdict
    waiting: int = 0  # records in Kafka when the engine started: a backlog
    change: Changed | None = None  # None: the question did not change
    seam: FileSeam | None = None  # None: no older events were in files
    backfill: Backfill | None = None  # None: no batch recount
    backfilled: Observed | None = None  # its results; None: it has none
    half_backfilled: Observed | None = None  # the results when it was killed; None: it was not
    expiring: tuple[Expiring, ...] | None = ()  # None: not measured, as in runs of an older version
    retention_ms: int = 0  # how long the manifest says that results are kept; 0: forever
    named: NamedLate | None = None  # None: the engine does not name dropped events

    # All events at once, to search for the cause of an error.

    @property
    def events(self) -> LogEvents:
        return self.judged.whole.events

    @property
    def batch(self) -> NDArray[np.integer[Any]]:
        return self.judged.whole.batch

    @property
    def dropped(self) -> Mask:
        return self.judged.whole.dropped

    @property
    def permitted(self) -> Mask:
        return self.judged.whole.permitted

    @property
    def sent_us(self) -> Ints:
        return self.judged.whole.sent_us

    @property
    def not_read(self) -> str:
        """The evidence that could not be read at the end, and why. One service may hold both kinds."""
        whys = {"the results": self.results_unread, "the Kafka log": self.log_unread}
        found = {what: why for what, why in whys.items() if why}
        if len(set(found.values())) == 1:
            return f"{' and '.join(found)} could not be read: {next(iter(found.values()))}"
        return "; ".join(f"{what} could not be read: {why}" for what, why in found.items())

    @property
    def cut_short(self) -> bool:
        """True if the load ended early because the engine was gone for good; the missing records were never sent."""
        return self.engine.state != "drained" and self.certificate.sent < self.certificate.intended

    @cached_property
    def doubt_in_all(self) -> Doubt:
        """The doubt by record, plus cells where fold and recount differ although the records do not.

        Records that were never sent because the load was cut short are in the fold of the tape, and in no doubt.
        """
        difference = self.only(self.tape_ledger - self.log_ledger, {Kind.COUNT})
        short = {cell: by for cell, by in difference.items() if by > 0 and not self.cut_short}
        over = {cell: -by for cell, by in difference.items() if by < 0}
        booked = (self.only(ledger, {Kind.COUNT}) for ledger in (self.doubt.missing, self.doubt.extra))
        missing, extra = (_larger(known, more) for known, more in zip(booked, (short, over), strict=True))
        return Doubt(missing, extra, self.doubt.newest_ms)

    @cached_property
    def allowed(self) -> Expectation:
        """The expectation for the engine: from the log, widened by the doubt about the log."""
        return self.doubt_in_all.widened(self.expectation)

    def are(self, cells: Ints, kinds: Collection[Kind]) -> NDArray[np.bool_]:
        """Return which of these cells hold a value of these kinds."""
        such = np.array([value.kind in kinds for value in self.oracle.values])
        if such.all():
            return np.ones(len(cells), dtype=np.bool_)
        return np.asarray(such[self.oracle.codes.keys(cells) // self.oracle.groups])

    def only(self, ledger: Ledger, kinds: Collection[Kind]) -> Ledger:
        """Return the ledger without cells of other kinds."""
        if all(value.kind in kinds for value in self.oracle.values):
            return ledger
        such = self.are(ledger.cells, kinds)
        return Ledger(compress(ledger.items(), such.tolist()))

    @cached_property
    def differences(self) -> list[Difference]:
        """The cells outside of the expectation; none if the results could not be read.

        A value that is no count is not judged in a cell in which tape and log disagree.
        """
        found = [] if self.results_unread or self.unbounded else self.allowed.differences(self.observed.counts)
        return [each for each in found if each.cell not in self.unsure]

    @cached_property
    def unbounded(self) -> bool:
        """True if it is unknown which late events the engine dropped, and the question has matches or places.

        A dropped event may take a match or a place away, and give another one. So neither all events nor those that are
        surely in time give a bound.
        """
        depend = any(value.kind in (Kind.MATCH, Kind.RANKED) for value in self.oracle.values)
        return depend and self.drops_late and not self.exact and bool(self.census.permitted)

    def differences_of(self, kinds: Collection[Kind]) -> list[Difference]:
        such = self.are(np.array([each.cell for each in self.differences], dtype=np.int64), kinds)
        return [each for each, is_such in zip(self.differences, such.tolist(), strict=True) if is_such]

    @cached_property
    def lacking_events(self) -> list[Difference]:
        """Values that are no counts and are too small because events are missing.

        The counts of the same window must be short too, unless the question has no count. If all events are counted,
        such a value is wrong for another reason.
        """
        few = [d for d in self.differences_of({Kind.MONOTONE}) if d.surplus < 0 and d.may > 0]
        if not any(value.kind is Kind.COUNT for value in self.oracle.values):
            return few
        short = {self.window(d.cell) for d in self.differences_of({Kind.COUNT}) if d.surplus < 0}
        return [d for d in few if self.window(d.cell) in short]

    @property
    def length_ms(self) -> int:
        """The length of a window; 0 if windows never close."""
        closing = np.flatnonzero(self.events.closes_ms != NEVER)[:1]
        lengths_ms = self.events.closes_ms[closing] - self.oracle.begins_ms(self.events.cell[closing])
        return int(lengths_ms.sum())

    def window(self, cell: int) -> tuple[int, int]:
        """Return the key and field that the cells of all values of one window share."""
        return self.oracle.codes.key(cell) % self.oracle.groups, self.oracle.codes.field(cell)

    def beside(self, cell: int, number: int) -> int:
        """Return the cell of another value of the same window."""
        group, field = self.window(cell)
        return self.oracle.codes.one(number * self.oracle.groups + group, field)

    @cached_property
    def census(self) -> Census:
        """The sums over all events."""
        first = self.oracle.groups
        return census_of(
            self.judged,
            self.audit.again,
            lambda cells: self.are(cells, {Kind.COUNT}),
            lambda cells: np.asarray(self.oracle.codes.keys(cells) < first),
        )

    @property
    def counts_of_event(self) -> int:
        """The largest number of cells that count one event: more than one if windows overlap."""
        return self.census.counts_of_event

    def is_empty(self, cell: int) -> bool:
        """Return True if no event of the log may have been counted in the cell. A sum of 0 may include many events."""
        if self.are(np.array([cell]), {Kind.COUNT, Kind.MONOTONE, Kind.MATCH, Kind.RANKED})[0]:
            return not self.allowed.may.count(cell)
        return not (self.oracle.merges and self.allowed.may.count(cell)) and not self.rows_of(cell).any()

    @cached_property
    def unwritten(self) -> list[int]:
        """Cells whose sum is 0 from events that must count, but that the results do not contain, not even as 0."""
        sums = any(value.kind is Kind.SUM for value in self.oracle.values)
        if not sums or self.results_unread or self.log_unread or self.oracle.merges:
            return []
        surely = ~self.dropped & ~self.judged.whole.is_open & (~self.permitted | (self.exact or not self.drops_late))
        cells = np.unique(self.events.cell[surely])
        known = {*self.allowed.may, *self.observed.counts, *self.observed.zeros, *self.unsure}
        return [cell for cell in cells[self.are(cells, {Kind.SUM})].tolist() if cell not in known]

    @cached_property
    def unsure(self) -> frozenset[int]:
        """Cells with values that are no counts, in which tape and log disagree."""
        unlike = {*(self.tape_ledger - self.log_ledger), *self.doubt.missing, *self.doubt.extra}
        codes = np.array([*unlike], dtype=np.int64)
        return frozenset(codes[~self.are(codes, {Kind.COUNT})].tolist())

    @property
    def slack(self) -> int:
        """How many events could be missing without detection, plus how many values that are no counts are uncertain.

        Zero: the verdict is exact to the single event.
        """
        allowed = Expectation(self._closed(self.allowed.must), self._closed(self.allowed.may))
        must, may = (self.only(ledger, {Kind.COUNT}) for ledger in (allowed.must, allowed.may))
        others = {*allowed.may, *allowed.must} - {*may, *must}
        return Expectation(must, may).slack + sum(
            allowed.must.count(cell) != allowed.may.count(cell) for cell in others
        )

    @property
    def left_out(self) -> list[Difference]:
        """Cells below their maximum by events that may have been late; below `must` events are lost.

        Empty if the engine did not reach the end, because it is unknown then.
        """
        return self._below_may if self.engine.state == "drained" else []

    @property
    def complete(self) -> bool:
        """True if no cell lacks an event that may have been late: then it is irrelevant if the end was reached."""
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
        """Remove cells that were never closed: they hold sentinel events only."""
        return _without(ledger, self.census.open_cells)

    @property
    def lacking(self) -> list[Difference]:
        """Cells that hold less than they may, for any reason."""
        seen, counted = self.observed.counts, self.only(self.allowed.may, {Kind.COUNT})
        return [Difference(cell, may, may, seen.count(cell)) for cell, may in counted.items() if seen.count(cell) < may]

    @property
    def late_dropped(self) -> int:
        """How many events were dropped: exact if the fate of each is known, else from the cells' deficits."""
        return self.census.dropped_records if self.exact else -sum(d.surplus for d in self.left_out)

    def fold(self, rows: NDArray[np.bool_]) -> Ledger:
        """Compute the cells' values from these events."""
        return folded(self.oracle, self.events, rows)

    def cell_name(self, cell: int) -> str:
        return self.oracle.name(cell, self.epoch_ms)

    def when(self, at_us: int) -> str:
        """Format a time, with the version of the table that came then, if the table keeps its versions."""
        version = self.watched.versions.get(at_us, "") if self.watched else ""
        when = when_of_load(at_us / 1000 - self.epoch_ms, self.spec.tape.load_ms)
        return f"{when} ({version})" if version else when

    def while_of(self, glitch: Glitch) -> str:
        """Format how long a glitch lasted, and since when."""
        since = f"from {self.when(glitch.from_us)}"
        if glitch.until_us is None:
            return f"{since} to the last poll"
        return f"for {(glitch.until_us - glitch.from_us) / 1e6:.1f} s {since}"

    def glimpsed(self, glitch: Glitch, expected: str) -> Witness:
        """Build a witness from a value that was seen for a while."""
        from_ms, until_us = glitch.from_us // 1000, glitch.until_us
        until_ms = None if until_us is None else until_us // 1000
        seen = repr(glitch.text)
        return Witness(glitch.where, expected, seen, self.while_of(glitch), from_ms=from_ms, until_ms=until_ms)

    def begins_ms(self, cells: Iterable[int]) -> list[int]:
        """Return the distinct window starts of cells, sorted."""
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
        touched = (
            f"batches {join(batches)} touched it"
            if batches
            else "there is no batch log with the batches that touched it"
        )
        from_ms, until_ms = self.span_of(difference.cell)
        return Witness(
            cell=self.cell_name(difference.cell),
            expected=must if must == may else f"{must} to {may}",
            seen=seen,
            detail=f"{by}{touched}{self._too_many_from(difference)}",
            event_ids=ids,
            batches=batches,
            from_ms=from_ms,
            until_ms=until_ms,
        )

    def _too_many_from(self, difference: Difference) -> str:
        """Format with which version of its table a cell held too many, if the table keeps its versions."""
        seen = self.watched
        if seen is None or not seen.versions or difference.surplus <= 0:
            return ""
        rows = np.flatnonzero((seen.cell == difference.cell) & (seen.count > difference.may))
        return f"; too many from {self.when(int(seen.at_us[rows[0]]))}" if len(rows) else ""

    def span_of(self, cell: int) -> tuple[int, int | None]:
        """Return the interval in which a cell's events are counted, late ones included."""
        begins_ms = int(self.oracle.begins_ms(np.array([cell], dtype=np.int64))[0])
        closes_ms = self.events.closes_ms[self.events.cell == cell]
        until_ms = int(closes_ms.max()) if len(closes_ms) else begins_ms + self.spec.window_ms
        return begins_ms, None if until_ms == NEVER else until_ms + self.spec.watermark_ms

    def witnesses(self, differences: Iterable[Difference]) -> tuple[Witness, ...]:
        """Build witnesses of the largest differences, which show most about the cause.

        If the question has several values, with different units, compare relative differences.
        """
        of_share = len(self.oracle.values) > 1
        shares = {d: abs(d.surplus) / (max(1, d.may) if of_share else 1) for d in differences}
        ranked = sorted(shares, key=lambda d: (-shares[d], -abs(d.surplus), d.cell))
        return tuple(self.witness(d) for d in ranked[:EXAMPLES])

    def events_said(self, count: int, one: str = "", several: str = "") -> str:
        """Format `3 events are`. If windows overlap, cells only show how often events count, not their number.

        A question of matches counts these and no events.
        """
        if any(value.kind is Kind.MATCH for value in self.oracle.values):
            return many(count, f"match{one}", f"matches{several}")
        if self.counts_of_event == 1:
            return many(count, f"event{one}", f"events{several}")
        return many(count, f"count of events{one}", f"counts of events{several}")

    @property
    def in_several(self) -> str:
        """The explanation that such a number needs."""
        return "" if self.counts_of_event == 1 else f" (each event counts in up to {self.counts_of_event:,} cells)"


def _said(value: int) -> str:
    return "null" if value == NULL else str(value)


def _larger(one: Ledger, other: Mapping[int, int]) -> Ledger:
    return Ledger((cell, max(one.count(cell), other.get(cell, 0))) for cell in {*one, *other})


def failed(name: str, sentence: str, count: int, witnesses: Iterable[Witness], word: str = "") -> CheckResult:
    """Return a FAIL that is blamed on the engine. Without another word it has the name of the check."""
    return CheckResult(name, Outcome.FAIL, sentence, word or name, count, "engine", tuple(witnesses))


def nobody_looked(name: str, case: RunFacts) -> CheckResult:
    """Return the result of a check of polls if there were none.

    If it was known before the run that results can't be polled, nothing is claimed; otherwise evidence is missing.
    """
    if case.blind:
        return CheckResult(name, Outcome.PASS, f"not checked: {case.blind}", asked=False)
    return CheckResult(name, Outcome.UNKNOWN, NOBODY_LOOKED, blame="evidence")


def first_rows(codes: Ints) -> NDArray[np.intp]:
    """Return the first row of each cell, in order of the rows."""
    return np.sort(np.unique(codes, return_index=True)[1])


def counted(things: Sized, name: str) -> str:
    """Format `1 result`, `2 results`."""
    return many(len(things), name)


def join(values: Iterable[object], limit: int = 8) -> str:
    """Format `1, 2, 3 and 14 more`."""
    shown = [str(v) for v in values]
    return ", ".join(shown[:limit]) + (f" and {len(shown) - limit} more" if len(shown) > limit else "")


def _without(ledger: Ledger, cells: Collection[int]) -> Ledger:
    return Ledger(pair for pair in ledger.items() if pair[0] not in cells) if cells else ledger
