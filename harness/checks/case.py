"""What a check gets to see: values only, put together by harness/judge.py from the files of a run.

Nothing here or in any check reaches for Kafka, Redis, an engine or a workload; a check is a pure function of a Case.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sized
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from harness.checksums import Checksum
from harness.lateness import NO_BATCH, LogEvents
from harness.ledger import Cell, Difference, Expectation, Ledger, cell_codes
from harness.model import (
    BatchLog,
    Certificate,
    CheckResult,
    EngineReport,
    FaultReport,
    Outcome,
    Progress,
    RunSpec,
    Witness,
)
from harness.texts import clock

EXAMPLES = 5
NOBODY_LOOKED = "the results were not looked at while the run went on"

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Named:
    """How many records are wrong in one way, and the names of the first ones."""

    count: int = 0
    examples: tuple[str, ...] = ()


@dataclass(frozen=True)
class LogAudit:
    """The tape against the Kafka log, record by record."""

    planned: int
    found: int
    missing: Named
    doubled: Named
    foreign: Named
    altered: Named
    removed: int = 0  # so many of them a planned fault has taken out of the log again

    @property
    def wrong(self) -> bool:
        return any(each.count for each in (self.missing, self.doubled, self.foreign, self.altered))


@dataclass(frozen=True)
class Doubt:
    """What tape and log disagree in, cell by cell: an engine may have read the one or the other."""

    missing: Ledger = field(default_factory=Ledger)  # sent, and not in the log when it was read
    extra: Ledger = field(default_factory=Ledger)  # in the log, and not as it was planned
    newest_ms: int | None = None  # the newest event time of what is missing: it may have made others late

    def widened(self, expectation: Expectation) -> Expectation:
        """What is missing may have been counted, and what is too much need not be."""
        if not self.missing and not self.extra:
            return expectation
        must = Ledger((cell, max(0, count - self.extra.count(cell))) for cell, count in expectation.must.items())
        return Expectation(must, expectation.may + self.missing)


@dataclass(frozen=True)
class Stray:
    """Something in the results that is no count of a known campaign."""

    where: str
    value: str
    # "campaign": of none that exists; "orphan": a window of Yahoo's schema to which no campaign refers; "number": it
    # stands where a count belongs and can't be read as one; "key": it is nothing that anybody takes for a result
    kind: str


@dataclass(frozen=True)
class Ambiguity:
    """One cell with two values or more: which of them is read is chance."""

    cell: Cell
    what: str  # "count" | "sums"
    texts: tuple[str, ...]


@dataclass(frozen=True)
class Observed:
    """All that the results held."""

    counts: Ledger
    strays: tuple[Stray, ...]
    sums: Mapping[Cell, Checksum] = field(default_factory=dict)
    zeros: tuple[Cell, ...] = ()  # cells that hold a count of 0, which a ledger forgets
    ambiguities: tuple[Ambiguity, ...] = ()


@dataclass(frozen=True)
class Edits:
    """What became of the run's files since its first verdict."""

    files: int = 0  # so many were compared
    changed: tuple[str, ...] = ()  # in words: "log.parquet was edited"
    note: str = ""  # why nothing could be compared


@dataclass(frozen=True)
class Glitch:
    """What was seen for a while and is no count of anything that exists. None: it was there at the last look."""

    where: str
    text: str
    from_us: int
    until_us: int | None


@dataclass(frozen=True)
class AfterStop:
    """The results as they were read again when the engine had been told to stop and had ended."""

    observed: Observed | None = None  # None: it had ended before, or they could not be read
    error: str = ""  # why not


@dataclass(frozen=True)
class Watched:
    """What was seen of the results while the run went on: a row for each change of a count, in order of the looks."""

    at_us: Ints
    campaign: Ints
    window_ms: Ints
    count: Ints
    longest_gap_ms: float  # between two looks: a change may have been there for so long
    unreadable: tuple[Glitch, ...] = ()  # it stood in the place of a count
    strangers: tuple[Glitch, ...] = ()  # it was that of a campaign or a window that can't be

    @property
    def codes(self) -> Ints:
        return cell_codes(self.campaign, self.window_ms)


@dataclass(frozen=True)
class Case:
    """Everything known of one run at the time of judgement."""

    spec: RunSpec
    epoch_ms: int
    campaign_names: tuple[str, ...]
    sent: int
    audit: LogAudit
    tape_ledger: Ledger
    log_ledger: Ledger
    events: LogEvents
    batch: NDArray[np.int64]
    dropped: NDArray[np.bool_]
    permitted: NDArray[np.bool_]
    sent_late: NDArray[np.bool_]
    expectation: Expectation
    observed: Observed
    drops_late: bool
    batch_log: BatchLog | None
    exact: bool  # the batch log says of every event whether it was dropped
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
    doubt: Doubt = Doubt()  # by record
    edits: Edits = Edits()
    contradictions: tuple[str, ...] = ()  # between the files of the run, in words
    results_unread: str = ""  # why they could not be read in the end; "": they were ...
    log_unread: str = ""  # ... and why the Kafka log could not
    notes: tuple[str, ...] = ()  # what was odd about the engine, and survivable

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
        difference = self.tape_ledger - self.log_ledger
        short = {cell: by for cell, by in difference.items() if by > 0 and not self.cut_short}
        over = {cell: -by for cell, by in difference.items() if by < 0}
        missing, extra = _larger(self.doubt.missing, short), _larger(self.doubt.extra, over)
        return Doubt(missing, extra, self.doubt.newest_ms)

    @cached_property
    def allowed(self) -> Expectation:
        """What the engine is held to: what is expected by the log, as far as the log is beyond doubt."""
        return self.doubt_in_all.widened(self.expectation)

    @property
    def differences(self) -> list[Difference]:
        """Results that nobody could read differ from nothing."""
        return [] if self.results_unread else self.allowed.differences(self.observed.counts)

    @property
    def left_out(self) -> list[Difference]:
        """Cells that hold less than they may, as far as that may have come too late: what is below `must` is lost.
        Of an engine that did not reach the end nobody can tell."""
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
        sure = ((cell, may - extra.count(cell)) for cell, may in self.expectation.may.items())
        held = ((cell, may, max(seen.count(cell), must.count(cell))) for cell, may in sure)
        return [Difference(cell, may, may, count) for cell, may, count in held if count < may]

    @property
    def late_dropped(self) -> int:
        """By the batch log, or without one by what the cells lack."""
        return int(self.dropped.sum()) if self.exact else -sum(d.surplus for d in self.left_out)

    @property
    def event_codes(self) -> Ints:
        """The cell of each event."""
        start = np.floor_divide(self.events.time_ms, self.spec.window_ms) * self.spec.window_ms
        return cell_codes(self.events.campaign, start)

    @property
    def copies(self) -> NDArray[np.bool_]:
        """Which events were sent before, and are in the log once more: the tape plans some, and each one counts."""
        result = np.ones(len(self.events), dtype=np.bool_)
        result[np.unique(self.events.id, return_index=True)[1]] = False
        return result

    def cell_name(self, cell: Cell) -> str:
        name = self.campaign_names[cell.campaign] if 0 <= cell.campaign < len(self.campaign_names) else "?"
        since = (cell.window_ms - self.epoch_ms) / 1000
        return f"campaign {cell.campaign} ({name[:8]}), window {clock(cell.window_ms)} ({since:+.0f} s)"

    def while_of(self, glitch: Glitch) -> str:
        """For how long it was there, and since when."""
        since = f"from {(glitch.from_us / 1000 - self.epoch_ms) / 1000:.1f} s into the load"
        if glitch.until_us is None:
            return f"{since} to the last look"
        return f"for {(glitch.until_us - glitch.from_us) / 1e6:.1f} s {since}"

    def glimpsed(self, glitch: Glitch, expected: str) -> Witness:
        """What was seen for a while."""
        from_ms, until_us = glitch.from_us // 1000, glitch.until_us
        until_ms = None if until_us is None else until_us // 1000
        seen = repr(glitch.text)
        return Witness(glitch.where, expected, seen, self.while_of(glitch), from_ms=from_ms, until_ms=until_ms)

    def rows_of(self, cell: Cell) -> NDArray[np.bool_]:
        start = np.floor_divide(self.events.time_ms, self.spec.window_ms) * self.spec.window_ms
        return np.asarray((self.events.campaign == cell.campaign) & (start == cell.window_ms) & ~self.dropped)

    def witness(self, difference: Difference) -> Witness:
        rows = self.rows_of(difference.cell)
        interval = (
            str(difference.must) if difference.must == difference.may else f"{difference.must} to {difference.may}"
        )
        ids = tuple(f"{int(i):012x}" for i in self.events.id[rows][:EXAMPLES])
        batches = tuple(int(b) for b in np.unique(self.batch[rows]) if b != NO_BATCH)
        touched = f"batches {join(batches)} touched it" if batches else "no batch log says which batches touched it"
        return Witness(
            cell=self.cell_name(difference.cell),
            expected=interval,
            seen=str(difference.seen),
            detail=f"{difference.surplus:+d}; {touched}",
            event_ids=ids,
            batches=batches,
            from_ms=difference.cell.window_ms,
            until_ms=self.counted_until_ms(difference.cell),
        )

    def counted_until_ms(self, cell: Cell) -> int:
        """From the start of its window on until then events of a cell come to be counted, the late ones among them."""
        return cell.window_ms + self.spec.window_ms + self.spec.watermark_ms

    def witnesses(self, differences: Iterable[Difference]) -> tuple[Witness, ...]:
        """The largest first: they say most about the cause."""
        ranked = sorted(differences, key=lambda d: (-abs(d.surplus), d.cell))
        return tuple(self.witness(d) for d in ranked[:EXAMPLES])


def _larger(one: Ledger, other: Mapping[Cell, int]) -> Ledger:
    return Ledger((cell, max(one.count(cell), other.get(cell, 0))) for cell in {*one, *other})


def nobody_looked(name: str, case: Case) -> CheckResult:
    """The answer of a check of what was seen meanwhile, where nothing was. Results that can't be looked at are known
    before a run, so that nothing is claimed of them; otherwise evidence is missing."""
    if case.blind:
        return CheckResult(name, Outcome.PASS, f"not looked for: {case.blind}")
    return CheckResult(name, Outcome.UNKNOWN, NOBODY_LOOKED, blame="evidence")


def first_rows(codes: Ints) -> NDArray[np.intp]:
    """The first row of each cell, in order of the rows."""
    return np.sort(np.unique(codes, return_index=True)[1])


def counted(things: Sized, name: str) -> str:
    """`1 result`, `2 results`."""
    return f"{len(things):,} {name}{'' if len(things) == 1 else 's'}"


def join(values: Iterable[object], limit: int = 8) -> str:
    """`1, 2, 3 and 14 more`."""
    shown = [str(v) for v in values]
    return ", ".join(shown[:limit]) + (f" and {len(shown) - limit} more" if len(shown) > limit else "")
