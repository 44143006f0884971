"""Runs with a known answer: a name, a run put together by hand, and the words that its verdict must carry."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from harness import lateness
from harness.checks.case import Case, Named, Observed, Stray
from harness.ledger import Cell, Expectation, Ledger
from harness.model import Batch, BatchLog, EngineReport, FaultReport, FaultSpec, Outcome, RunSpec, When
from tests.quick.cases import CAMPAIGNS, EPOCH_MS, SPEC, WINDOW_MS, case, events

KILL = FaultSpec("kill@c3:batch=3", "kill", When("point", "c3", 3))
LANDED = FaultReport(KILL, True, True, "seen", batch=3, replayed=True)
HONEST = case()
FIRST, LAST = min(HONEST.log_ledger), max(HONEST.log_ledger)

Row = tuple[str, Case, Outcome, tuple[str, ...]]


def seen(change: Ledger, **more) -> Case:
    return case(observed=Observed(HONEST.log_ledger + change, ()), **more)


def rows() -> Iterator[Row]:
    """The expected matrix, to be read from top to bottom."""
    failed, unknown = Outcome.FAIL, Outcome.UNKNOWN
    yield "honest", HONEST, Outcome.PASS, ()
    yield "one lost", seen(Ledger({FIRST: -1})), failed, ("lost",)
    yield "one lost in the last window", seen(Ledger({LAST: -1})), failed, ("lost",)
    yield "a cell lost", seen(Ledger({FIRST: -HONEST.log_ledger.count(FIRST)})), failed, ("lost",)
    yield "one doubled", seen(Ledger({LAST: 1})), failed, ("duplicated",)
    yield "all doubled", seen(HONEST.log_ledger), failed, ("duplicated",)
    yield "one moved to another campaign", seen(Ledger({FIRST: -1, _other(FIRST): 1})), failed, ("lost", "duplicated")
    yield "one moved to another window", seen(Ledger({FIRST: -1, LAST: 1})), failed, ("lost", "duplicated")
    yield "a window that nobody expects", seen(Ledger({Cell(0, EPOCH_MS + 9_000_000): 1})), failed, ("phantom",)
    yield "an hour off", _moved(3_600_000), failed, ("lost", "phantom")
    yield "a stranger", _stray(Stray("nobody[1]", "1", "campaign")), failed, ("phantom",)
    yield "no number", _stray(Stray("campaign-0[1]", "1?", "number")), failed, ("unreadable",)
    yield "nothing answered", case(observed=Observed(Ledger(), ())), failed, ("lost",)
    yield "stuck", case(engine=EngineReport("stuck", "no answer")), failed, ("stuck",)
    yield "crashed", case(engine=EngineReport("crashed", "gone")), failed, ("crashed",)
    yield "late, allowed", late(None, 0), Outcome.PASS, ()
    yield "late, as many as allowed", late(late(None, 0).dropped.sum(), 0), Outcome.PASS, ()
    yield "late, one too many", late(late(None, 0).dropped.sum() - 1, 0), failed, ("late-dropped",)
    yield "late, and one more is missing", late(None, 1), failed, ("lost",)
    yield "not late, and yet called late", _called_late(), failed, ("lost",)
    yield "nothing sent", case(sent=0), unknown, ("vacuous",)
    yield "nothing in the log", _empty(), unknown, ("vacuous",)
    yield "no window closed", case(events(20)), unknown, ("vacuous",)
    for kind, word in (("missing", "producer-lost"), ("doubled", "producer-dup")):
        yield f"a record {kind}", case(audit=replace(HONEST.audit, **_one(kind))), unknown, (word,)
    for kind in ("foreign", "altered"):
        yield f"a record {kind}", case(audit=replace(HONEST.audit, **_one(kind))), unknown, (kind,)
    yield "oracles disagree", case(tape_ledger=HONEST.log_ledger + Ledger({FIRST: 1})), unknown, ("oracle",)
    yield "fault not tried", _fault(), unknown, ("not landed",)
    yield "fault missed", _fault(replace(LANDED, landed=False)), unknown, ("not landed",)
    yield "fault not healed", _fault(replace(LANDED, healed=False)), unknown, ("not landed",)
    yield "fault not reachable", _fault(replace(LANDED, landed=False, reachable=False)), unknown, ("not landed",)
    yield "fault missed, and one lost", seen(Ledger({FIRST: -1}), spec=_planned()), failed, ("not landed", "lost")
    yield "fault landed", _fault(LANDED), Outcome.PASS, ()


def late(limit, stolen) -> Case:
    """A watermark passes the first window between two batches; `stolen` further events vanish without a reason."""
    log = events()
    half = 100
    evidence = BatchLog(
        (Batch(0, {0: half, 1: half}, 0), Batch(1, {0: 150, 1: 150}, EPOCH_MS + 25_000)), drops_late=True, complete=True
    )
    # The newer half of the second batch is dated back into the first window.
    truth = (log.offset >= half) & (log.offset % 10 == 0)
    log = replace(log, time_ms=np.where(truth, EPOCH_MS + 1, log.time_ms))
    held = Ledger.of_events(log.campaign[~truth], log.time_ms[~truth], WINDOW_MS)
    permitted = np.ones(len(log), dtype=np.bool_)
    gone = lateness.dropped(log, evidence, WINDOW_MS) & permitted
    kept = Ledger.of_events(log.campaign[~gone], log.time_ms[~gone], WINDOW_MS)
    return case(
        log,
        spec=replace(SPEC, late_dropped_max=None if limit is None else int(limit)),
        dropped=gone,
        permitted=permitted,
        batch=lateness.batch_of(log, evidence),
        expectation=Expectation(kept, kept),
        observed=Observed(held + Ledger({max(held): -stolen}), ()),
        drops_late=True,
        batch_log=evidence,
        exact=True,
    )


def _called_late() -> Case:
    """The engine left out an event that no honest reading of the log makes late: the expectation keeps it."""
    log = events()
    return case(
        log,
        expectation=Expectation(HONEST.log_ledger, HONEST.log_ledger),
        observed=Observed(HONEST.log_ledger - Ledger({FIRST: 1}), ()),
        drops_late=True,
        batch_log=BatchLog((Batch(0, {0: 150, 1: 150}, EPOCH_MS + 10_000),), drops_late=True, complete=True),
        exact=True,
    )


def _other(cell: Cell) -> Cell:
    return Cell((cell.campaign + 1) % CAMPAIGNS, cell.window_ms)


def _moved(by_ms: int) -> Case:
    return case(observed=Observed(HONEST.log_ledger.shifted(by_ms), ()))


def _stray(stray: Stray) -> Case:
    return case(observed=Observed(HONEST.log_ledger, (stray,)))


def _empty() -> Case:
    return case(events(0), audit=replace(HONEST.audit, found=0))


def _one(kind: str):
    return {kind: Named(1, ("000000000001",))}


def _planned() -> RunSpec:
    return replace(SPEC, fault=KILL)


def _fault(*reports: FaultReport) -> Case:
    return case(spec=_planned(), faults=reports)
