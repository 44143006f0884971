"""Explain missing events if no single record or batch does: compare explanations and choose the best.

Without an engine's own evidence, missing events may have been dropped as late, or lost. By the log alone most events
may have been late, because partitions are read at any speed. So both explanations are compared with the order in which
events were sent: an engine with a watermark drops events that come after the end of their window, and one that lost its
state lacks all events sent before its restart.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import inf

import numpy as np
from numpy.typing import NDArray

from harness.evidence.ledger import Ledger
from harness.judging import lateness
from harness.judging.checks.case import RunFacts
from harness.judging.checks.kinds import COUNTS
from harness.model import INDEX_BITS, MARK_SERVER, FaultReport
from harness.util.texts import clock, many

Ints = NDArray[np.int64]

FEWEST = 20  # events: too many for one interval by accident
# Times around a fault at which the missing interval may begin or end: dense near it. Then finer around the best.
EDGES_S = (-30, -20, -12, -8, -5, -3, -2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2, 3, 5, 8, 12, 20, 30, 45, 60, 90)
EDGES_US = (np.array(EDGES_S) * 1e6).astype(np.int64)
WIDEST_US, NEARER = 10_000_000, 12
CLOSE_US = 20_000
BEHIND = (
    "they came more than {:.1f} s behind the newest event, and in time for their windows: the job drops events "
    "by their own lateness. It must wait for the end of the window plus the declared lateness"
)
UNLIKE = 0.1  # the share of the missing events by which an explanation may be wrong
LOSES_ROWS = frozenset({"postgresql-promote"})  # the store comes back without rows that it had confirmed
STEPS, READING_STEPS = 8, 40  # numbers of watermarks to try, up to the declared one
NOISE = 0.05  # the share of the missing events that may be lost besides the late ones
SURELY = 5.0  # the required log-likelihood ratio of two explanations
SHORTER = (
    "they came after their window had ended, within the declared lateness of {:g} s: the watermark of the job is "
    "shorter than that. Lengthen it in the job, or let the job read watermark_ms from its settings"
)


@dataclass(frozen=True)
class Missing:
    """The deficits of cells below their maximum, and the events that may be missing."""

    cells: Ints  # cells that lack an event or hold sent events; sorted
    lacks: Ints  # the deficit of each cell
    place: Ints  # the cell of each event, as an index into `cells`
    sent_us: Ints  # of each event
    rows: NDArray[np.intp]  # the row of each event in the log

    @property
    def total(self) -> int:
        return int(self.lacks.sum())

    def per_cell(self, events: NDArray[np.bool_]) -> Ints:
        return np.bincount(self.place[events], minlength=len(self.cells))


def missing(case: RunFacts) -> Missing:
    """Collect the deficits. Sentinel records are sent when an engine has nothing else to do, and are left out."""
    may, seen = case.only(case.allowed.may, COUNTS), case.observed.counts
    rows = np.flatnonzero((case.sent_us > 0) & (case.events.id >> INDEX_BITS != MARK_SERVER) & ~case.dropped)
    rows = rows[np.isin(case.events.cell[rows], may.cells)]
    cells, place = np.unique(case.events.cell[rows], return_inverse=True)
    lacks = np.array([max(0, may.count(cell) - seen.count(cell)) for cell in cells.tolist()], dtype=np.int64)
    return Missing(cells, lacks, place, case.sent_us[rows], rows)


def by_restart(case: RunFacts) -> str:
    """Explain missing events by an engine that came back from a fault without state, with older state, or at a later
    offset.

    Return "" if none explains them.
    """
    landed = [fault for fault in case.faults if fault.landed and fault.landed_ms]
    found = missing(case) if landed else None
    if found is None or found.total < FEWEST:
        return ""
    for fault in landed:
        hole = _sharp_hole(found, fault.at_ms * 1000, fault.landed_ms * 1000)
        if hole.unlike <= UNLIKE * found.total:
            return _in_words(case, fault, hole)
    return ""


def by_watermark(case: RunFacts) -> str:
    """Explain missing events by a watermark that is shorter than the declared lateness.

    Return "" if it does not explain them, or a random loss explains them as well.
    """
    if case.exact:
        return SHORTER.format(case.spec.watermark_ms / 1000) if _by_itself(case) else ""
    found = missing(case)
    if not found.total:
        return ""
    best_ms = _watermark_by_sending(case, found)
    if best_ms is None:
        best_ms = _watermark_by_reading(case, found)
    if best_ms is None:
        return _behind(case, found)
    if not case.drops_late:
        return 'they came after their window had ended: the job drops late events, but its manifest has late = "keep"'
    return SHORTER.format(case.spec.watermark_ms / 1000) if best_ms < case.spec.watermark_ms else ""


def by_one_window(case: RunFacts) -> str:
    """If windows overlap, explain missing counts by events that are counted in only one of their windows."""
    if case.counts_of_event == 1:
        return ""
    short = Ledger((d.cell, -d.surplus) for d in case.differences_of(COUNTS) if d.surplus < 0)
    counted = np.flatnonzero(~case.dropped & case.are(case.events.cell, COUNTS))
    records, begins_ms = case.events.record[counted], case.oracle.begins_ms(case.events.cell[counted])
    order = np.lexsort((begins_ms, records))
    changes = np.diff(records[order]) != 0
    for which, is_it in (("oldest", np.append(True, changes)), ("newest", np.append(changes, True))):
        others = np.zeros(len(case.events), dtype=np.bool_)
        others[counted[order[~is_it]]] = True
        if int(others.sum()) == short.total and case.only(case.fold(others), COUNTS) == short:
            return f"each event is counted in the {which} of its windows only"
    return ""


def by_names(case: RunFacts) -> str:
    """Report names of windows that do not hold their events, which excuse no loss.

    Return "" if there are none, or the names are not trusted anyway.
    """
    if not case.exact or case.batch_log is not None or case.named is None:
        return ""
    if not (wrong := lateness.named_elsewhere(case.events, case.named, case.oracle.codes)):
        return ""
    lines = many(wrong, "line of late.jsonl names", "lines of late.jsonl name")
    return f"{lines} a window in which the event does not lie (a window is named by its start, in milliseconds)"


def by_forgotten_names(case: RunFacts) -> str:
    """Report that all missing events may have been late, but the engine, which names dropped events, does not name
    them.
    """
    if not case.exact or case.batch_log is not None or case.named is None:
        return ""
    maybe = case.only(case.fold(case.permitted & ~case.dropped), COUNTS)
    if any(-d.surplus > maybe.count(d.cell) for d in case.differences_of(COUNTS) if d.surplus < 0):
        return ""
    return (
        "all of it may have been late, but late.jsonl does not name it (a name must be on disk before the offset "
        "after its event is committed)"
    )


def _by_itself(case: RunFacts) -> bool:
    """Return True if the missing events are those that the engine reports as dropped, mostly after their window."""
    rows = np.zeros(len(case.events), dtype=np.bool_)
    if case.batch_log is not None:
        rows = lateness.dropped(case.events, case.batch, case.batch_log)
    elif case.named is not None:
        rows = lateness.named_among(case.events, case.named, case.oracle.codes)
    short = Ledger((d.cell, -d.surplus) for d in case.differences_of(COUNTS) if d.surplus < 0)
    rows &= ~case.dropped
    if case.only(case.fold(rows), COUNTS) != short:
        return False
    found = missing(case)
    late_by_ms = (_newest_ms(case, found) - case.events.closes_ms[found.rows])[rows[found.rows]]
    return bool((late_by_ms < 0).sum() <= UNLIKE * len(late_by_ms))


@dataclass(frozen=True)
class _Hole:
    """An interval of missing events. `unlike` is the number of events that contradict it."""

    unlike: int
    from_us: int | None  # None: from the start
    until_us: int
    whole: bool  # from all cells, not only from those that continue after it

    @property
    def edges_us(self) -> tuple[int, ...]:
        return (self.until_us,) if self.from_us is None else (self.from_us, self.until_us)


def _sharp_hole(found: Missing, strike_us: int, back_us: int) -> _Hole:
    """Find the interval around a fault that fits best, by searching its edges in ever smaller steps."""
    hole, step_us = _hole(found, strike_us + EDGES_US, back_us), WIDEST_US / 2
    while step_us > CLOSE_US:
        around_us = [edge_us + np.linspace(-2, 2, NEARER) * step_us for edge_us in hole.edges_us]
        hole = _hole(found, np.unique(np.concatenate([*around_us, hole.edges_us]).astype(np.int64)), back_us)
        step_us *= 4 / NEARER
    return hole


def _hole(found: Missing, edges_us: Ints, back_us: int) -> _Hole:
    """Choose the best interval between two of these times.

    Events sent after the engine came back were in no state that it can have lost.
    """
    parts = len(edges_us) + 1
    part = np.searchsorted(edges_us, found.sent_us, side="right")
    counts = np.bincount(found.place * parts + part, minlength=len(found.cells) * parts).reshape(-1, parts)
    before = np.cumsum(counts, axis=1)  # up to each edge; the last column is the total
    holes = []
    for first, last in combinations(range(-1, parts - 1), 2):
        between = before[:, last] - (before[:, first] if first >= 0 else 0)
        from_us = int(edges_us[first]) if first >= 0 else None
        for whole, held in ((False, np.where(before[:, -1] > before[:, last], between, 0)), (True, between)):
            unlike = int(np.abs(found.lacks - held).sum())
            if whole or edges_us[last] <= back_us + CLOSE_US:
                holes.append(_Hole(unlike, from_us, int(edges_us[last]), whole))
    return min(holes, key=lambda hole: (hole.unlike, hole.from_us is not None))


def _in_words(case: RunFacts, fault: FaultReport, hole: _Hole) -> str:
    noun = "restart" if case.engine.restarts else "pause" if "pause" in fault.spec.action else "fault"
    restart = f"the {noun} at {clock(fault.at_ms)} ({_since_s(case, fault.at_ms * 1000)}, {fault.spec.text})"
    state, older = (": the engine restarted without its state", ": the engine restarted with an older state")
    if not case.engine.restarts:
        state = older = ""
    if hole.whole:
        first = "the beginning" if hole.from_us is None else _since_s(case, hole.from_us)
        until = _since_s(case, hole.until_us)
        how = "the store lost it at" if fault.spec.action in LOSES_ROWS else "it was skipped at"
        return f"all that was sent from {first} to {until} is missing: {how} {restart}"
    if hole.from_us is None:
        cells = "is missing from the cells that went on after it"
        return f"everything before {restart} {cells}{state}"
    since = f"all that was sent from {_since_s(case, hole.from_us)} on and before {restart}"
    return f"{since} is missing from the cells that went on{older}"


def _since_s(case: RunFacts, at_us: int) -> str:
    return f"{at_us / 1e6 - case.epoch_ms / 1000:+.1f} s"


def _watermark_by_sending(case: RunFacts, found: Missing) -> int | None:
    """Return the watermark that explains the missing events best, if they were read as sent; None: none does.

    A backlog was not read in the order of its times.
    """
    if case.spec.tape.waits:
        return None
    return _best(case, found, _newest_ms(case, found) - case.events.closes_ms[found.rows])


def _behind(case: RunFacts, found: Missing) -> str:
    """Check if they were too far behind the newest event, independent of their windows."""
    if case.spec.tape.waits:
        return ""
    best_ms = _best(case, found, _newest_ms(case, found) - case.events.time_ms[found.rows])
    return "" if best_ms is None else BEHIND.format(best_ms / 1000)


def _best(case: RunFacts, found: Missing, late_by_ms: Ints) -> int | None:
    """Return the watermark that explains the missing events best; None: none does."""
    all_of = found.per_cell(np.ones(len(found.rows), dtype=np.bool_))
    fits = {ms: _likelier(found, found.per_cell(late_by_ms >= ms), all_of) for ms in _tried_ms(case, STEPS)}
    best_ms = max(fits, key=lambda ms: fits[ms])
    return best_ms if fits[best_ms] >= SURELY else None


def _watermark_by_reading(case: RunFacts, found: Missing) -> int | None:
    """Find the watermark by the order in which the engine reports to have read the partitions.

    After a repartition, events of a partition that is ahead make those of others late. Within one turn of reading the
    order is unknown. So all events that an earlier turn made late must be missing, none may be missing that no turn
    made late, and most missing events must be of the first kind.
    """
    if not case.told:
        return None
    turn = _turns(case, found.rows)
    newest_ms = np.full(len(case.told) + 2, np.iinfo(np.int64).min // 2)  # until before each turn
    np.maximum.at(newest_ms, turn + 1, case.events.time_ms[found.rows])
    newest_ms, closes_ms = np.maximum.accumulate(newest_ms), case.events.closes_ms[found.rows]
    surely_ms, maybe_ms = newest_ms[turn] - closes_ms, newest_ms[turn + 1] - closes_ms
    fits: dict[int, int] = {}
    for ms in _tried_ms(case, READING_STEPS):
        surely, maybe = found.per_cell(surely_ms >= ms), found.per_cell(maybe_ms >= ms)
        unlike = int(np.maximum(0, found.lacks - maybe).sum() + np.maximum(0, surely - found.lacks).sum())
        if unlike <= UNLIKE * found.total and 2 * np.minimum(surely, found.lacks).sum() >= found.total:
            fits[ms] = unlike
    return min(fits, key=lambda ms: fits[ms]) if fits else None


def _turns(case: RunFacts, rows: NDArray[np.intp]) -> Ints:
    """Return the turn in which each event was first read: before the first progress line that covers it."""
    turn = np.zeros(len(rows), dtype=np.int64)
    partition, offset = case.events.partition[rows], case.events.offset[rows]
    for each in np.unique(partition).tolist():
        done = np.maximum.accumulate([progress.offsets.get(each, 0) for progress in case.told])
        here = partition == each
        turn[here] = np.searchsorted(done, offset[here], side="right")
    return turn


def _tried_ms(case: RunFacts, steps: int) -> list[int]:
    tried: list[int] = np.unique(np.linspace(0, case.spec.watermark_ms, steps + 1).astype(np.int64)).tolist()
    return tried


def _newest_ms(case: RunFacts, found: Missing) -> Ints:
    """Return the newest event time that was sent up to each event."""
    order = np.argsort(found.sent_us, kind="stable")
    time_ms = case.events.time_ms[found.rows][order]
    newest = np.empty_like(time_ms)
    newest[order] = np.maximum.accumulate(time_ms)
    return newest


def _likelier(found: Missing, late: Ints, all_of: Ints) -> float:
    """Return the log-likelihood ratio of a loss among these late events against a loss among all events."""
    if np.maximum(0, found.lacks - late).sum() > UNLIKE * found.total:
        return -inf
    share = (late / max(1, late.sum())) / (all_of / all_of.sum())
    return float((found.lacks * np.log((1 - NOISE) * share + NOISE)).sum())
