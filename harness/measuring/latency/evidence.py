"""Collect the input of latency from the files of a run: events that count, their due and send times, and the polls.

The log shows which events count, the tape when each was due, and the send log when it was sent
(harness/measuring/latency/sending.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from harness.evidence.grouping import grouped, numbered, sizes
from harness.evidence.ledger import Ledger
from harness.evidence.observed import NO_BATCH, folded, picked
from harness.judging import progress_curve
from harness.judging.lateness import Countable
from harness.judging.stored_run import StoredRun
from harness.measuring.latency import ends
from harness.measuring.latency.ends import Ends
from harness.measuring.latency.sending import Sending
from harness.measuring.latency.visibility import Ints, Mask, Samples
from harness.model import INDEX_BITS, MARK_SERVER, RunSpec
from harness.results.sampler import sampled_keys
from harness.rundir.missing_evidence import MissingEvidence
from harness.rundir.store import Store
from workloads.base import MAY_FALL, Kind, Oracle

COLLECTED = "events and looks"  # key of the derived value in a stored run
UPDATED = "updated:"
WRONG = -1
_MOST_DIGITS = 15  # longer texts are no times


@dataclass(frozen=True)
class Events:
    """The events that count in polled cells, by cell. Sentinel records are included, because they affect ranks."""

    cell: NDArray[np.int32]
    due_us: Ints
    sent_us: Ints
    turn: NDArray[np.integer[Any]] | None  # the order in which they reached the engine; None: unknown
    mark: Mask

    def bounds(self, cells: int) -> NDArray[np.intp]:
        """Return where each cell begins, and where the last one ends."""
        return np.searchsorted(self.cell, np.arange(cells + 1, dtype=np.int32))


@dataclass(frozen=True)
class Cells:
    """The properties of each cell."""

    key: Ints
    events: Ints  # how many events count, as far as known
    final: Ints  # the right final count, or WRONG if the results hold another one
    marked: Mask  # it holds a sentinel record, so it is not measured
    counts: Mask  # its value is the number of its events: it holds k when k of them are visible
    code: Ints  # its code in the whole run


@dataclass(frozen=True)
class Looked:
    """The frequency of the polls."""

    period_ms: float
    period_p99_ms: float
    period_max_ms: float
    whole_period_max_ms: float = 0.0
    seen_late: int = 0  # changes that only whole polls could see


@dataclass(frozen=True)
class Evidence:
    """The input of latency for one run."""

    probes_from: int  # the first key of the probes
    epoch_ms: int
    events: Events
    cells: Cells
    samples: Samples
    looked: Looked
    yahoo_ms: Ints  # time_updated minus the end of the window
    ends: Ends | None = None  # of batches, as the engine reports them


def collect(run: StoredRun) -> Evidence:
    """Collect the evidence of a run. It takes a while, and is kept. Raise MissingEvidence if a file is missing."""
    if COLLECTED not in run.made:
        run.made[COLLECTED] = collect_by(run, run.oracle, lambda: run.countable)
    evidence: Evidence = run.made[COLLECTED]
    return evidence


def collect_by(run: StoredRun, oracle: Oracle, counted: Callable[[], Countable]) -> Evidence:
    """Collect the evidence for a question and its countable events, and keep only the necessary columns."""
    samples, looked, log = run.samples, _looked(run.store), counted()
    expected = _expected(oracle, log)
    spec, epoch_ms = run.spec, run.epoch_ms
    marks = set(log.events.cell[_is_mark(log)].tolist())
    log = log.only(_can_be_measured(oracle, log, sampled_keys(spec.tape), expected))
    known, due_us, sent_us = Sending(run.schedule, epoch_ms, run.sends).of(log.events)
    counts = known & ~log.dropped
    log, due_us, sent_us = log.only(counts), picked(due_us, counts), picked(sent_us, counts)
    codes, cell = numbered(log.events.cell)
    turn, mark = _turn(log, spec), _is_mark(log)
    cells = _cells(run, oracle, log, codes, cell, expected=expected)
    del log
    run.let_go_of_events()
    order = grouped(cell)
    due_us = due_us[order]  # one after the other, to free each column before the next is sorted
    sent_us = sent_us[order]
    events = Events(cell[order], due_us, sent_us, None if turn is None else turn[order], mark[order])
    first_ms = epoch_ms if spec.tape.warm_up else 0  # earlier windows belong to a warm-up

    def is_measured(key: int, window_ms: int) -> bool:
        return window_ms >= first_ms and oracle.codes.one(key, window_ms) not in marks

    return Evidence(
        probes_from=oracle.probed_from,
        epoch_ms=epoch_ms,
        events=events,
        cells=cells,
        samples=_samples(samples, oracle, codes),
        looked=looked,
        yahoo_ms=_yahoo_ms(run, is_measured),
        ends=ends.told(progress_curve.progress_lines(run.store)),
    )


def _looked(store: Store) -> Looked:
    told = next(store.history("observer"), None)
    if told is None:
        raise MissingEvidence(f"the history of {store.path} has no entry 'observer', so the results were not looked at")
    try:
        return msgspec.convert(told, Looked)
    except msgspec.ValidationError as error:
        raise MissingEvidence(
            f"the history of {store.path} has an entry 'observer' that can't be read: {error}"
        ) from None


def _turn(log: Countable, spec: RunSpec) -> NDArray[np.integer[Any]] | None:
    """Events of one batch reach the engine together, and those of one partition in its order."""
    if (log.batch != NO_BATCH).all():
        return log.batch
    return log.events.offset if spec.tape.partitions == 1 else None


def _is_mark(log: Countable) -> Mask:
    return np.asarray(log.events.id >= MARK_SERVER << INDEX_BITS)  # no server has a larger number


def _cells(
    run: StoredRun, oracle: Oracle, log: Countable, codes: Ints, cell: NDArray[np.int32], *, expected: Ledger
) -> Cells:
    """A count is right if it holds all its events, or, if some may have been dropped, at least the others."""
    observed, most = run.observed.counts, np.iinfo(np.int64).max
    count = sizes(cell, len(codes))
    sure = log.exact or run.claim.late == "keep"
    least = count if sure else count - sizes(cell[log.permitted], len(codes))
    seen = np.array([min(max(observed.count(code), WRONG), most) for code in codes.tolist()], dtype=np.int64)
    final, counts = np.where((least <= seen) & (seen <= count), seen, WRONG), _are(oracle, codes, Kind.COUNT)
    if not counts.all():
        final = np.where(counts, final, _right(codes, expected, observed))
    marked = sizes(cell[_is_mark(log)], len(codes)) > 0
    return Cells(oracle.codes.keys(codes), count, final, marked, counts, codes)


def _expected(oracle: Oracle, log: Countable) -> Ledger:
    """Return the values that are no counts. They may depend on events that are not measured themselves."""
    if all(value.kind is Kind.COUNT for value in oracle.values):
        return Ledger()
    return folded(oracle, log.events, ~log.dropped)


def _right(codes: Ints, expected: Ledger, observed: Ledger) -> Ints:
    """Compare values that are no counts with the expected ones."""
    pairs = ((expected.count(code), observed.count(code)) for code in codes.tolist())
    return np.array([seen if seen == value else WRONG for value, seen in pairs], dtype=np.int64)


def _are(oracle: Oracle, codes: Ints, *kinds: Kind) -> Mask:
    such = np.array([value.kind in kinds for value in oracle.values])
    return np.asarray(such[oracle.codes.keys(codes) // oracle.groups])


def _can_be_measured(oracle: Oracle, log: Countable, looked_at: Sequence[int], expected: Ledger) -> Mask:
    """Select events of polled keys. For a value that may fall it is unknown when an event became visible, and an event
    that completes no match is not seen.
    """
    codes, cell = numbered(log.events.cell)
    can = np.isin(oracle.codes.keys(codes), looked_at) & ~_are(oracle, codes, *MAY_FALL)
    if any(value.kind is Kind.MATCH for value in oracle.values):
        can &= np.isin(codes, expected.cells)
    return np.asarray(can[cell])


def _samples(table: pa.Table, oracle: Oracle, codes: Ints) -> Samples:
    """Keep cells with events that count. Other cells are wrong, as the verdict reports."""
    columns = {name: np.asarray(table.column(name).to_numpy(), dtype=np.int64) for name in table.column_names}
    code = oracle.codes.of(columns["campaign"], columns["window_ms"])
    inside = np.isin(code, codes)
    cell = np.searchsorted(codes, code[inside])
    return Samples(cell, columns["at_us"][inside], columns["count"][inside])


def _is_moment(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS


def _yahoo_ms(run: StoredRun, is_measured: Callable[[int, int], bool]) -> Ints:
    """Compute the original benchmark's own figure, if the engine writes it."""
    found = []
    index = {name: number for number, name in enumerate(run.keys)}
    for row in run.rows:
        key = index.get(row.key.removeprefix(UPDATED)) if row.key.startswith(UPDATED) else None
        if key is None or not (_is_moment(row.field) and _is_moment(row.value)):
            continue
        window = int(row.field)
        if is_measured(key, window):
            found.append(int(row.value) - window - run.spec.window_ms)
    return np.array(found, dtype=np.int64)
