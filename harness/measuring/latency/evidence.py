"""Collect the input of latency from the files of a run: events that count, their due and send times, and the polls.

The log shows which events count, the tape when each was due, and the send log when it was sent
(harness/measuring/latency/sending.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from harness.evidence.grouping import grouped, numbered, sizes, some_groups
from harness.evidence.ledger import Ledger
from harness.evidence.long_rows import Distinct, Rows, ordered
from harness.evidence.observed import NO_BATCH, folded, joined, picked
from harness.judging import progress_curve
from harness.judging.lateness import Countable
from harness.judging.stored_run import StoredRun
from harness.measuring.latency import ends
from harness.measuring.latency.ends import Ends
from harness.measuring.latency.sending import Sending
from harness.measuring.latency.visibility import Ints, Mask, Samples
from harness.model import INDEX_BITS, MARK_SERVER
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
    """The events that count in some polled cells, by cell. Sentinel records are included, because they affect ranks."""

    cell: NDArray[np.int32]
    due_us: Ints
    sent_us: Ints
    turn: NDArray[np.integer[Any]] | None  # the order in which they reached the engine; None: unknown
    mark: Mask


class EventsByCell:
    """All of them, to be read some cells at a time."""

    def __init__(self, rows: Rows, sizes: Ints, *, turns: bool) -> None:
        """`rows` are in the order of their cells, and `sizes` counts those of each cell."""
        self._rows, self.turns = rows, turns
        self.bounds: Ints = np.append(0, np.cumsum(sizes))  # where each cell begins, and where the last one ends

    @property
    def folder(self) -> Path:
        return self._rows.folder

    def parts(self) -> Iterator[tuple[range, Events]]:
        """Yield ranges of cells with their events."""
        for cells in some_groups(self.bounds):
            rows = self._rows.read(slice(int(self.bounds[cells.start]), int(self.bounds[cells.stop])))
            cell, due_us, sent_us, turn, mark = (np.ascontiguousarray(rows[name]) for name in BY_CELL.names or ())
            yield cells, Events(cell, due_us, sent_us, turn if self.turns else None, mark)


_KEPT = [("due_us", np.int64), ("sent_us", np.int64), ("turn", np.int64), ("mark", np.bool_)]
BY_CELL = np.dtype([("cell", np.int32), *_KEPT])
# As they come, in the order of the log; "turn" is the batch, and "offset" is only needed for one partition.
_BY_LOG = [("code", np.int64), ("permitted", np.bool_), *_KEPT]
_OFFSET = ("offset", np.int64)


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
    events: EventsByCell
    cells: Cells
    samples: Samples
    looked: Looked
    yahoo_ms: Ints  # time_updated minus the end of the window
    ends: Ends | None = None  # of batches, as the engine reports them


def collect(run: StoredRun) -> Evidence:
    """Collect the evidence of a run. It takes a while, and is kept. Raise MissingEvidence if a file is missing."""
    if COLLECTED not in run.made:
        run.made[COLLECTED] = collect_by(run, run.oracle, partial(_counted, run))
    evidence: Evidence = run.made[COLLECTED]
    return evidence


def _counted(run: StoredRun) -> Iterable[Countable]:
    return run.counted.parts()


def collect_by(run: StoredRun, oracle: Oracle, counted: Callable[[], Iterable[Countable]]) -> Evidence:
    """Collect the evidence for a question and its countable events, and keep only the necessary columns."""
    samples, looked = run.samples, _looked(run.store)
    spec, epoch_ms = run.spec, run.epoch_ms
    found = _gone_through(run, oracle, counted())
    run.let_go_of_events()
    cells, events = _by_cell(run, oracle, found)
    first_ms = epoch_ms if spec.tape.warm_up else 0  # earlier windows belong to a warm-up

    def is_measured(key: int, window_ms: int) -> bool:
        return window_ms >= first_ms and oracle.codes.one(key, window_ms) not in found.marks

    return Evidence(
        probes_from=oracle.probed_from,
        epoch_ms=epoch_ms,
        events=events,
        cells=cells,
        samples=_samples(samples, oracle, cells.code),
        looked=looked,
        yahoo_ms=_yahoo_ms(run, is_measured),
        ends=ends.told(progress_curve.progress_lines(run.store)),
    )


@dataclass(frozen=True)
class _Found:
    """The events that count, in the order of the log."""

    rows: Rows
    codes: Ints  # of their cells
    marks: set[int]  # the codes of cells that hold a sentinel record
    expected: Ledger
    exact: bool
    in_batches: bool  # the batch of each of them is known


def _gone_through(run: StoredRun, oracle: Oracle, parts: Iterable[Countable]) -> _Found:
    sending = Sending(run.schedule, run.epoch_ms, run.sends, run.audit.again)
    looked_at, columns = sampled_keys(run.spec.tape), [*_BY_LOG, *([_OFFSET] if run.spec.tape.partitions == 1 else [])]
    rows, codes, marks, several = Rows(columns, run.store.path), Distinct(), set[int](), list[Countable]()
    expected, exact, in_batches = Ledger(), True, True

    def keep(part: Countable) -> bool:
        own = _rows(part, sending, rows.kind)
        rows.add(own)
        codes.add(numbered(np.ascontiguousarray(own["code"]))[0])
        return bool((own["turn"] != NO_BATCH).all())

    for part in parts:
        exact, expected = part.exact, _expected(oracle, part)
        marks.update(part.events.cell[_is_mark(part)].tolist())
        able = part.only(_can_be_measured(oracle, part, looked_at, expected))
        if (copied := sending.of_several(able.events)).any():
            several.append(able.only(copied))
        in_batches &= keep(able.only(~copied))
    if several:
        in_batches &= keep(joined(several))
    return _Found(rows, codes.sorted(), marks, expected, exact, in_batches)


def _rows(part: Countable, sending: Sending, kind: np.dtype[Any]) -> NDArray[Any]:
    """Return the rows of events that were sent by the plan and not dropped."""
    known, due_us, sent_us = sending.of(part.events)
    counts = known & ~part.dropped
    columns = {
        "code": part.events.cell,
        "offset": part.events.offset,
        "permitted": part.permitted,
        "due_us": due_us,
        "sent_us": sent_us,
        "turn": part.batch,
        "mark": _is_mark(part),
    }
    rows = np.empty(int(counts.sum()), dtype=kind)
    for name in kind.names or ():
        rows[name] = picked(columns[name], counts)
    return rows


def _by_cell(run: StoredRun, oracle: Oracle, found: _Found) -> tuple[Cells, EventsByCell]:
    """Number the cells, and put the events into their order. Events of one batch reach the engine together, and those
    of one partition in its order.
    """
    by_offset = not found.in_batches and "offset" in (found.rows.kind.names or ())
    taken = {"turn": "offset"} if by_offset else {}
    counts, permitted, marked = np.zeros((3, len(found.codes)), dtype=np.int64)

    def parts() -> Iterator[tuple[NDArray[np.int32], NDArray[Any]]]:
        for part in found.rows.parts():
            codes, place = numbered(np.ascontiguousarray(part["code"]))
            yield np.searchsorted(found.codes, codes).astype(np.int32)[place], part

    for cell, part in parts():
        counts += sizes(cell, len(counts))
        permitted += sizes(cell[part["permitted"]], len(counts))
        marked += sizes(cell[part["mark"]], len(counts))

    def by_cell() -> Iterator[tuple[NDArray[np.int32], NDArray[Any]]]:
        for cell, part in parts():
            rows = np.empty(len(part), dtype=BY_CELL)
            for name in BY_CELL.names or ():
                rows[name] = cell if name == "cell" else part[taken.get(name, name)]
            yield cell, rows

    rows = ordered(by_cell(), counts, Rows(BY_CELL, run.store.path), _in_order_of_cells)
    is_sure = found.exact or run.claim.late == "keep"
    least = counts if is_sure else counts - permitted
    cells = _cells(oracle, found, run.observed.counts, counts, least=least, marked=marked > 0)
    return cells, EventsByCell(rows, counts, turns=found.in_batches or by_offset)


def _in_order_of_cells(rows: NDArray[Any]) -> NDArray[Any]:
    cell = rows["cell"]
    return rows[grouped(cell - cell.min(initial=np.iinfo(np.int32).max))]


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


def _is_mark(log: Countable) -> Mask:
    return np.asarray(log.events.id >= MARK_SERVER << INDEX_BITS)  # no server has a larger number


def _cells(oracle: Oracle, found: _Found, observed: Ledger, counts: Ints, *, least: Ints, marked: Mask) -> Cells:
    """A count is right if it holds all its events, or, if some may have been dropped, at least the others."""
    codes, most = found.codes, np.iinfo(np.int64).max
    seen = np.array([min(max(observed.count(code), WRONG), most) for code in codes.tolist()], dtype=np.int64)
    is_count = _are(oracle, codes, Kind.COUNT)
    final = np.where((least <= seen) & (seen <= counts), seen, WRONG)
    if not is_count.all():
        final = np.where(is_count, final, _right(codes, found.expected, observed))
    return Cells(oracle.codes.keys(codes), counts, final, marked, is_count, codes)


def _expected(oracle: Oracle, log: Countable) -> Ledger:
    """Return the values that are no counts. They may depend on events that are not measured themselves, so all events
    are one part.
    """
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
