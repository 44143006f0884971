"""Runs with a known answer, assembled by hand: a name and a run. expected.toml has the outcome that each must have.

Each run is honest but for one mistake. Runs that must PASS are next to those that must not: a checker that always fails
is as useless as one that never does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np

from harness.evidence.changed_query import CutoverRule
from harness.evidence.checksums import ID_RANGE, PRIME, Checksum
from harness.evidence.ledger import Expectation, Ledger
from harness.evidence.observed import (
    NO_BATCH,
    AfterStop,
    Ambiguity,
    Edits,
    Named,
    NamedLate,
    Observed,
    State,
    Stray,
    Watched,
)
from harness.judging import lateness
from harness.judging.changed import Changed
from harness.judging.checks import question
from harness.judging.checks.case import RunFacts
from harness.judging.facts import as_far_as_read
from harness.judging.lateness import below
from harness.judging.scenario_conditions import BOUND, MIB
from harness.model import (
    Backfill,
    Batch,
    BatchLog,
    EngineReport,
    Expiring,
    FaultReport,
    FileSeam,
    KeptState,
    Progress,
    Required,
)
from harness.selftest import (
    joins,
    late_reads,
    matches,
    meanwhile,
    orders,
    payments,
    places,
    readers,
    requests,
    rides,
    rows,
    visits,
)
from harness.selftest.by_hand import (
    BEYOND,
    CAMPAIGNS,
    CODES,
    EPOCH_MS,
    FIRST,
    HONEST,
    KILL,
    LANDED,
    LAST,
    ORACLE,
    SPEC,
    SUMS,
    WINDOW_MS,
    case,
    cell,
    changed,
    dated,
    events,
    ledger,
    seen,
    sums,
    watched,
)

SUMMED = case(spec=replace(SPEC, tape=replace(SPEC.tape, checksum=True)))
CHANGED = Changed(CutoverRule.CARRY, (5,), question.FEWEST_CELLS, frozenset(), {}, {})
BATCH = Backfill("batch", "", 5_000, 3.0, 20.0)
HALF = Ledger((cell, HONEST.log_ledger[cell]) for cell in sorted(HONEST.log_ledger)[::2])

Planted = tuple[str, RunFacts]


def counts() -> Iterator[Planted]:
    yield "honest", HONEST
    yield "one lost", seen({FIRST: -1})
    yield "one lost in the last window", seen({LAST: -1})
    yield "a cell lost", seen({FIRST: -HONEST.log_ledger.count(FIRST)})
    yield "the last window lost", _without(CODES.field(LAST))
    yield "one doubled", seen({LAST: 1})
    yield "all doubled", seen(HONEST.log_ledger)
    yield "one moved to another campaign", seen({FIRST: -1, _other(FIRST): 1})
    yield "one moved to another window", seen({FIRST: -1, LAST: 1})
    yield "a window that nobody expects", seen({BEYOND: 1})
    yield "a negative count that nobody expects", seen({BEYOND: -3})
    yield (
        "each window under the name of the next one",
        case(observed=Observed(_off_by(HONEST.log_ledger, WINDOW_MS), ())),
    )
    yield "an hour off", case(observed=Observed(_off_by(HONEST.log_ledger, 3_600_000), ()))
    yield "a stranger", _stray(Stray("nobody[1]", "1", "campaign"))
    yield "no number", _stray(Stray("campaign-0[1]", "1?", "number"))
    yield "a cell with two values", _ambiguous(FIRST)
    yield (
        "a count of 0 that nobody expects",
        case(observed=Observed(HONEST.log_ledger, (), zeros=(BEYOND,))),
    )
    yield "a count of 0 where all were dropped as late", _all_dropped(FIRST)
    yield "sums, all of them right", case(oracle=SUMS)
    yield "a sum too large", seen({FIRST: 1}, oracle=SUMS)
    yield "a sum too small", seen({FIRST: -1}, oracle=SUMS)
    yield "a sum that is missing", seen({LAST: -HONEST.log_ledger.count(LAST)}, oracle=SUMS)
    yield "a sum that nobody expects", seen({BEYOND: -3}, oracle=SUMS)
    yield "a sum too small, and stuck", seen({FIRST: -1}, oracle=SUMS, engine=EngineReport("stuck", "no answer"))
    yield "nothing answered", case(observed=Observed(Ledger(), ()))
    yield "stuck", case(engine=EngineReport("stuck", "no answer"))
    yield "stuck, and one unseen", seen({FIRST: -1}, engine=EngineReport("stuck", "no answer"))
    yield "crashed", case(engine=EngineReport("crashed", "gone"))
    starved, unsettled = EngineReport("starved", "no CPU"), EngineReport("unsettled", "back too late")
    yield "starved", case(engine=starved)
    yield "starved, and one doubled", seen({FIRST: 1}, engine=starved)
    yield "no room left", case(engine=EngineReport("no-room", "full"))
    yield "no memory left", case(engine=EngineReport("no-memory", "killed"))
    unserved = EngineReport("unserved", "Redis is gone")
    yield "unserved", case(engine=unserved)
    yield "unserved, and one unseen", seen({FIRST: -1}, engine=unserved)
    yield "unserved, and one doubled", seen({FIRST: 1}, engine=unserved)
    yield "one lost, and Redis evicted keys", seen({FIRST: -1}, evicted="evicted_keys +3")
    yield "one doubled, and Redis evicted keys", seen({LAST: 1}, evicted="evicted_keys +3")
    yield "one doubled, and the log was cut", seen({LAST: 1}, cut="partition 0 begins at offset 5")
    yield "all right, and Redis evicted keys", case(evicted="evicted_keys +3")
    yield "all right, and Kafka throttled the load", case(throttled="throttle_time_ms 9,800")
    yield "one lost, and Kafka throttled the load", seen({FIRST: -1}, throttled="throttle_time_ms 9,800")
    yield "unsettled", case(engine=unsettled)
    yield "unsettled, and one unseen", seen({FIRST: -1}, engine=unsettled)
    yield "unsettled, and one doubled", seen({FIRST: 1}, engine=unsettled)


def late_events() -> Iterator[Planted]:
    dropped = int(late(None, 0).dropped.sum())
    yield "late, allowed", late(None, 0)
    yield "late, as many as allowed", late(dropped, 0)
    yield "late, one too many", late(dropped - 1, 0)
    yield "late, and one more is missing", late(None, 1)
    yield "not late, and yet called late", _called_late()
    yield "late, and named", _self_named()
    yield "late, and one was not named", _self_named(forgets=1)
    yield "late, and one was named that was counted", _self_named(adds=1)
    yield "not late, and yet named", _self_named(early=1)
    yield "late, and named with its window", _self_named(window=0)
    yield "late, and named with a window in which it does not lie", _self_named(window=WINDOW_MS)
    yield "final results, and nothing has closed the last cells", _final()
    yield "final results, and the last cells that were closed are lost", _final(lost=1)
    yield "final results, and one is missing that may have been late", _final(permitted=1)


def evidence() -> Iterator[Planted]:
    yield "nothing sent", case(sent=0)
    yield "nothing in the log", case(events(0), audit=replace(HONEST.audit, found=0))
    yield "no window closed", case(events(20))
    yield "few cells begin in files and go on in Kafka", case(seam=FileSeam((75, 75), (50, 50)))
    yield from _unmet()
    for kind in ("missing", "doubled", "foreign", "altered"):
        wrong: dict[str, Any] = {kind: Named(1, ("000000000001",))}
        yield f"a record {kind}", case(audit=replace(HONEST.audit, **wrong))
    yield "files were edited", replace(HONEST, edits=Edits(9, ("log.parquet was edited",)))
    yield "right, and FAIL at first", replace(HONEST, failed_first=True)
    yield "one lost, and FAIL at first", replace(seen({FIRST: -1}), failed_first=True)
    yield "files contradict each other", replace(HONEST, contradictions=("progress.jsonl holds no line",))
    yield "the results could not be read", _results_unread()
    yield (
        "no number for a while, and the results could not be read",
        _results_unread(meanwhile.glitched(at_s=12.0).watched),
    )
    yield "stuck, and the results could not be read", _results_unread(engine=EngineReport("stuck", "no answer"))
    yield "the log could not be read", _log_unread()
    yield "the log could not be read, and one is missing", _log_unread({FIRST: -1})
    yield "the log could not be read, and one is beyond the plan", _log_unread({FIRST: 1})
    yield "oracles disagree", case(tape_ledger=HONEST.log_ledger + Ledger({FIRST: 1}))
    yield "one lost, and the judge mislaid it", _mislaid(1)
    yield "one doubled, and the judge expects it", _mislaid(-1)


def _final(lost: int = 0, permitted: int = 0) -> RunFacts:
    """Make results come when their window is closed, without evidence of late events. The last window is never closed.
    `lost` windows before it are missing, and `permitted` events that may have been late.
    """
    log = HONEST.events
    begins_ms = np.unique(ORACLE.begins_ms(log.cell))
    open_ms, lost_ms = begins_ms[-1:], begins_ms[-1 - lost : -1]
    is_open = np.isin(ORACLE.begins_ms(log.cell), open_ms)
    may_be_late = np.arange(len(log)) < permitted
    seen = ledger(log, ~np.isin(ORACLE.begins_ms(log.cell), (*open_ms, *lost_ms)) & ~may_be_late)
    must = ledger(log, ~is_open & ~may_be_late)
    changes: dict[str, Any] = {"is_open": is_open, "permitted": may_be_late, "observed": Observed(seen, ())}
    return case(drops_late=True, final=True, expectation=Expectation(must, HONEST.log_ledger), **changes)


def faults() -> Iterator[Planted]:
    yield "fault not tried", _fault()
    yield "fault missed", _fault(replace(LANDED, landed=False))
    yield "fault not healed", _fault(replace(LANDED, healed=False))
    yield "fault not reachable", _fault(replace(LANDED, landed=False, reachable=False))
    yield "fault missed, and one lost", seen({FIRST: -1}, spec=replace(SPEC, fault=KILL))
    yield "fault landed", _fault(LANDED)


def stopped() -> Iterator[Planted]:
    """Yield runs whose results were read again after the engine was stopped."""
    yield "the same after the stop", _stopped({})
    yield "a run that did not look", case(after_stop=None)
    yield "ended before it could be stopped", case(after_stop=AfterStop())
    gone = AfterStop(error="ConnectionError: refused")
    yield "its keys have a time to live", case(expiring=(Expiring(3, 60_000, "campaign-0"),))
    yield "its keys have a time to live, as declared", case(expiring=(Expiring(3, 50_000, "c"),), retention_ms=60_000)
    yield "no second reading", case(after_stop=gone)
    yield "no second reading, by a program that asks the engine", case(after_stop=gone, watched=None, blind="printed")
    yield "one more after the stop", _stopped({LAST: 1})
    yield "a cell gone after the stop", _stopped({FIRST: -HONEST.log_ledger.count(FIRST)})
    stranger = replace(HONEST.observed, strays=(Stray("nobody[1]", "1", "campaign"),))
    yield "a stranger after the stop", case(after_stop=AfterStop(stranger))
    own = replace(HONEST.observed, strays=(Stray("job:stopped_at", "a key of type string", "key"),))
    yield "a key of the job's own after the stop", case(after_stop=AfterStop(own))
    twice = replace(HONEST.observed, ambiguities=(Ambiguity(FIRST, "count", ("1", "2")),))
    yield "a second value after the stop", case(after_stop=AfterStop(twice))
    zero = replace(HONEST.observed, zeros=(BEYOND,))
    yield "a count of 0 that nobody expects after the stop", case(after_stop=AfterStop(zero))
    other = replace(SUMMED.observed, sums={**SUMMED.observed.sums, FIRST: Checksum(1, 1)})
    yield "other sums after the stop", replace(SUMMED, after_stop=AfterStop(other))
    yield "one lost, and there after the stop", _stopped({}, {FIRST: -1})
    yield "one lost, and two after the stop", _stopped({FIRST: -1, LAST: -1}, {FIRST: -1})
    yield "one lost, and still after the stop", _stopped({FIRST: -1}, {FIRST: -1})
    yield "stuck until the stop", _stopped({}, {FIRST: -1}, engine=EngineReport("stuck", "no answer"))
    yield "overrun, and further after the stop", _stopped({}, {FIRST: -1}, engine=EngineReport("overrun", "too slow"))


def backfills() -> Iterator[Planted]:
    """Yield runs whose input a batch counted again. The stream dropped nothing as late here."""
    yield "a batch that holds the same", _backfill({})
    yield "a batch with one too few", _backfill({FIRST: -1})
    yield "a batch with one too many", _backfill({LAST: 1})
    yield "a batch with a window that nobody expects", _backfill({BEYOND: 1})
    yield "a batch that is right where the stream lost one", _backfill({}, {FIRST: -1})
    yield "a batch that lost the one that the stream lost", _backfill({FIRST: -1}, {FIRST: -1})
    yield "a batch that broke off", case(backfill=replace(BATCH, broke_off="it ended by itself"))
    yield "a batch that was killed half-way, and is right", _killed({}, HALF)
    yield "a batch that adds to what its killed half had written", _killed(HALF, HALF)
    yield "a batch that lost what its killed half had written", _killed(Ledger() - HALF, HALF)
    yield "a batch that was killed before it wrote", _killed({}, {})
    yield "a batch that was killed when all was written", _killed({}, HONEST.log_ledger)
    yield "a batch that was not killed, and should have been", _killed({}, None)


def questions() -> Iterator[Planted]:
    """Yield runs of a job that changed to another question. By hand both are the same: only the reports of them
    differ.
    """
    wrong, last = (Observed(HONEST.log_ledger + Ledger({each: 1}), ()) for each in (FIRST, LAST))
    left = replace(CHANGED, left={FIRST: frozenset({wrong.counts.count(FIRST)})})
    yield "another question, and its answer", case(change=CHANGED)
    yield "windows of two lengths in one cell", case(change=replace(CHANGED, collisions=frozenset({FIRST})))
    for word, name in (
        ("ignored", "the old question all the time"),
        ("partial", "the new question from the change on"),
    ):
        yield name, case(observed=wrong, change=replace(CHANGED, others={word: wrong.counts}))
    yield "left by the old job", case(observed=wrong, change=left)
    yield "left by nobody", case(observed=last, change=left)
    yield "nobody knows what its state held", case(change=replace(CHANGED, restored=()))
    yield "too few cells on both sides", case(change=replace(CHANGED, both_sides=question.FEWEST_CELLS - 1))


def states() -> Iterator[Planted]:
    """Yield runs with the state of a job after a batch in the middle, and after the one before."""
    right, before = _state(21), _state(20).held.counts
    held = right.held.counts
    one, gone = min(held), FIRST  # its window is over
    yield "its state, as it should be", _looked_into(right)
    yield "its state a batch later, and as it should be", _looked_into(right, _state(22))
    yield "the state of the batch before", _looked_into(_holding(right, before))
    yield "a cell that its state lacks", _looked_into(_holding(right, held - Ledger({one: held[one]})))
    yield "a count in its state is one too low", _looked_into(_holding(right, held - Ledger({one: 1})))
    yield "a count in its state is one too high", _looked_into(_holding(right, held + Ledger({one: 1})))
    yield "a cell in its state that nobody expects", _looked_into(_holding(right, held + Ledger({BEYOND: 1})))
    over = held + Ledger({gone: HONEST.log_ledger[gone]})
    yield "a cell in its state that the watermark has passed", _looked_into(_holding(right, over))
    stranger = replace(right, held=replace(right.held, strays=(Stray("nobody[1]", "1", "campaign"),)))
    yield "a stranger in its state", _looked_into(stranger)
    without = Observed(HONEST.log_ledger - Ledger({one: HONEST.log_ledger[one]}), ())
    yield "a cell of its state that the results lack", _looked_into(right, observed=without)
    stuck = EngineReport("stuck", "no answer")
    yield "the same, and it is stuck", _looked_into(right, observed=without, engine=stuck)
    yield "its state could not be read", _looked_into(states_unread="exit code 1")
    yield "its state was never kept", _looked_into()
    unsure = {"permitted": np.ones(len(HONEST.events), dtype=np.bool_), "exact": False}
    expectation = Expectation(Ledger(), HONEST.log_ledger)
    yield "its state, and nobody knows what was late", _looked_into(right, **unsure, expectation=expectation)
    yield "its state after a checkpoint, as it should be", _of_checkpoints(right)
    yield "the state of the checkpoint before", _of_checkpoints(_holding(right, before))


def checksummed() -> Iterator[Planted]:
    lost, extra = (int(number) for number in SUMMED.events.id[SUMMED.rows_of(FIRST)][:2])
    swapped = Checksum(extra - lost, _square(extra) - _square(lost))
    yield "honest, with sums", SUMMED
    yield "one lost, one doubled, with sums", _summed({FIRST: swapped})
    yield "one lost, one doubled, without", replace(_summed({FIRST: swapped}), spec=SPEC)
    other = Checksum(-swapped.s1, -swapped.s2)
    yield "two changed places between campaigns", _summed({FIRST: swapped, _other(FIRST): other})
    yield "wrong events, but S1 is right", _summed({FIRST: Checksum(0, 1)})
    yield "wrong events, but S2 is right", _summed({FIRST: Checksum(PRIME, 0)})
    yield (
        "one lost, with sums",
        replace(SUMMED, observed=Observed(HONEST.log_ledger - Ledger({FIRST: 1}), (), _sums({}))),
    )
    yield "late, allowed, with sums", _late_summed()
    yield "a cell without sums", _without_sums(FIRST)
    yield "no sums at all", replace(SUMMED, observed=Observed(HONEST.log_ledger, ()))


def _looked_into(*found: State, **more: Any) -> RunFacts:
    """Add a batch per second, whose watermark follows the batches before and makes nothing late."""
    ends = [_ends(batch) for batch in range(30)]
    batches = tuple(
        Batch(batch, dict(enumerate(taken)), _watermark_ms(batch - 1), at_ms=None) for batch, taken in enumerate(ends)
    )
    taken = np.searchsorted([end for end, _ in ends], HONEST.events.offset, side="right")
    known: dict[str, Any] = {"batch": taken, "batch_log": BatchLog(batches, True, True), "drops_late": True}
    return case(**{**known, "spec": replace(SPEC, states=2), "exact": True, "states": found, **more})


def _of_checkpoints(*found: State) -> RunFacts:
    """Make the engine report checkpoints instead of batches."""
    told = tuple(
        Progress(EPOCH_MS + 1000 * number, number, 0, dict(enumerate(_ends(number))), _watermark_ms(number))
        for number in range(30)
    )
    return _looked_into(*found, batch=HONEST.batch, batch_log=None, exact=False, told=told)


def _ends(batch: int) -> tuple[int, int]:
    """Return the end offsets of a batch: ten events per second, in two partitions by turns."""
    return 5 * (batch + 1), 5 * (batch + 1)


def _watermark_ms(batch: int) -> int:
    """Return the watermark before the batch: its newest event is from the end of the last second."""
    return max(0, EPOCH_MS + 1000 * batch - 100 - SPEC.watermark_ms)


def _state(batch: int) -> State:
    """Return the right state."""
    log, kept = HONEST.events, KeptState(1, batch, _ends(batch), _watermark_ms(batch), 0)
    rows = below(log, kept.ends) & (log.closes_ms > kept.watermark_ms)
    return State(kept, Observed(ledger(log, rows), ()))


def _holding(state: State, counts: Ledger) -> State:
    return replace(state, held=replace(state.held, counts=counts))


def _backfill(batch: Mapping[int, int], stream: dict[int, int] | None = None) -> RunFacts:
    left = Observed(HONEST.log_ledger + Ledger(batch), ())
    return seen(stream or {}, backfill=BATCH, backfilled=left)


def _killed(batch: Mapping[int, int], half: Mapping[int, int] | None) -> RunFacts:
    """Add the kill of a batch job. `half` is what it had written by then; None: it was not killed."""
    stood = None if half is None else Observed(Ledger(half), ())
    return replace(_backfill(batch), spec=replace(HONEST.spec, backfill_kill=True), half_backfilled=stood)


def _stopped(after: dict[int, int], before: dict[int, int] | None = None, **more: Any) -> RunFacts:
    """Give the results a surplus and a lack after the stop, and before it."""
    again = Observed(HONEST.log_ledger + Ledger(after), (), HONEST.observed.sums)
    first = Observed(HONEST.log_ledger + Ledger(before or {}), (), HONEST.observed.sums)
    return case(observed=first, after_stop=AfterStop(again), **more)


def late(limit: int | None, stolen: int) -> RunFacts:
    """Make a watermark pass the first window between two batches. `stolen` more events vanish without a reason."""
    log = events()
    half = 100
    proof = BatchLog(
        (Batch(0, {0: half, 1: half}, 0), Batch(1, {0: 150, 1: 150}, EPOCH_MS + 25_000)), drops_late=True, complete=True
    )
    # A part of the second batch is dated back into the first window.
    truth = (log.offset >= half) & (log.offset % 10 == 0)
    sent_ms = log.time_ms
    time_ms = np.where(truth, EPOCH_MS + 1, log.time_ms)
    log = dated(log.partition, log.offset, log.id, CODES.keys(log.cell), time_ms)
    batch = lateness.batch_of(log, proof)
    gone = lateness.dropped(log, batch, proof)
    kept, held = ledger(log, ~gone), ledger(log, ~truth)
    return case(
        log,
        spec=replace(SPEC, late_dropped_max=limit),
        dropped=gone,
        permitted=np.ones(len(log), dtype=np.bool_),
        batch=batch,
        expectation=Expectation(kept, kept),
        observed=Observed(held - Ledger({max(held): stolen}), ()),
        drops_late=True,
        batch_log=proof,
        exact=True,
        sent_us=sent_ms * 1000,
        watched=watched(log.only(~gone), sent_ms[~gone]),
    )


def _self_named(*, forgets: int = 0, adds: int = 0, early: int = 0, window: int | None = None) -> RunFacts:
    """Make the engine name the events that it dropped, without the first `forgets` and with `adds` more. `early` of the
    dropped ones are not late by any honest reading of the log. With `window`, it names a window for each, which is off
    by so much.
    """
    whole = late(None, 0)
    log, gone = whole.events, whole.dropped
    named = NamedLate(np.concatenate([log.record[gone][forgets:], log.record[~gone][:adds]]))
    if window is not None:
        pairs = np.column_stack((log.record[gone], CODES.fields(log.cell[gone]) + window))
        named = NamedLate(np.empty(0, dtype=np.int64), windows=pairs)
    permitted = ~np.isin(log.record, log.record[gone][:early])
    dropped = lateness.named_among(log, named, CODES) & permitted
    kept = ledger(log, ~dropped)
    return changed(
        whole,
        dropped=dropped,
        permitted=permitted,
        batch=np.full(len(log), NO_BATCH, dtype=np.int64),
        batch_log=None,
        named=named,
        expectation=Expectation(kept, kept),
    )


def _called_late() -> RunFacts:
    """Drop an event that is not late by any honest reading of the log: the expectation keeps it."""
    return case(
        expectation=Expectation(HONEST.log_ledger, HONEST.log_ledger),
        observed=Observed(HONEST.log_ledger - Ledger({FIRST: 1}), ()),
        drops_late=True,
        batch_log=BatchLog((Batch(0, {0: 150, 1: 150}, EPOCH_MS + 10_000),), drops_late=True, complete=True),
        exact=True,
    )


def _unmet() -> Iterator[Planted]:
    """Yield runs whose input lacks what its scenario requires."""

    def about(name: Required, **more: Any) -> RunFacts:
        return case(spec=replace(SPEC, requires=(name,), conf={BOUND: "8"}), **more)

    yield "nothing late where the scenario is about it", about("late")
    yield "nothing delayed where the scenario is about it", about("delayed")
    yield "a state that never outgrew its bound", about("outgrown-state", told=_told(state_bytes=8 * MIB))
    yield "a state of which nobody tells how large it is", about("outgrown-state")
    yield "a state that outgrew its bound", about("outgrown-state", told=_told(state_bytes=8 * MIB + 1))
    yield "a kill before a full window and its lateness were processed", about("full-window", faults=_struck(20_000))
    yield "a kill after a full window and its lateness", about("full-window", faults=_struck(21_000))
    yield "a backlog of less than a second of the load", about("backlog", waiting=10)
    yield "a backlog that is smaller than a usual batch", about("backlog", waiting=100, told=_told(rows=100))
    yield "a backlog that is larger than a usual batch", about("backlog", waiting=101, told=_told(rows=100))


def _struck(after_ms: int) -> tuple[FaultReport, ...]:
    return (replace(LANDED, at_ms=EPOCH_MS + after_ms),)


def _told(**values: int) -> tuple[Progress, ...]:
    return tuple(replace(line, **values) for line in HONEST.told)  # type: ignore[arg-type]


def _results_unread(watched: Watched | None = HONEST.watched, **more: Any) -> RunFacts:
    """Make Redis unreachable at the end."""
    return case(observed=Observed(Ledger(), ()), watched=watched, results_unread="Redis is gone", **more)


def _log_unread(change: dict[int, int] | None = None) -> RunFacts:
    """Make Kafka unreachable at the end; the content of the results is known."""
    return as_far_as_read(
        case(
            events(0),
            tape_ledger=HONEST.tape_ledger,
            observed=Observed(HONEST.log_ledger + Ledger(change or {}), ()),
            watched=HONEST.watched,
            told=HONEST.told,
            log_unread="Kafka is gone",
        )
    )


def _mislaid(count: int) -> RunFacts:
    """Make results and expectation agree, while the log holds another number of events."""
    wrong = HONEST.log_ledger - Ledger({FIRST: count})
    return case(expectation=Expectation(wrong, wrong), observed=Observed(wrong, ()))


def _without(window_ms: int) -> RunFacts:
    kept = Ledger((code, n) for code, n in HONEST.log_ledger.items() if CODES.field(code) != window_ms)
    return case(observed=Observed(kept, ()))


def _other(code: int) -> int:
    return cell((CODES.key(code) + 1) % CAMPAIGNS, CODES.field(code))


def _stray(stray: Stray) -> RunFacts:
    return case(observed=Observed(HONEST.log_ledger, (stray,)))


def _ambiguous(cell: int) -> RunFacts:
    twice = Ambiguity(cell, "count", ("1", str(HONEST.log_ledger.count(cell))))
    return case(observed=Observed(HONEST.log_ledger, (), ambiguities=(twice,)))


def _all_dropped(cell: int) -> RunFacts:
    """Make all events of a cell late, so that the engine wrote a 0 for it."""
    log = HONEST.events
    gone = HONEST.rows_of(cell)
    kept = ledger(log, ~gone)
    return case(
        log,
        spec=replace(SPEC, late_dropped_max=None),
        dropped=gone,
        permitted=gone,
        expectation=Expectation(kept, kept),
        observed=Observed(kept, (), zeros=(cell,)),
        drops_late=True,
        exact=True,
        watched=watched(log.only(~gone), log.time_ms[~gone]),
    )


def _fault(*reports: FaultReport) -> RunFacts:
    return case(spec=replace(SPEC, fault=KILL), faults=reports)


def _summed(changes: dict[int, Checksum]) -> RunFacts:
    return replace(SUMMED, observed=Observed(HONEST.log_ledger, (), _sums(changes)))


def _sums(changes: dict[int, Checksum]) -> dict[int, Checksum]:
    return {
        cell: Checksum(
            *((a + b) % m for a, b, m in zip(pair, changes.get(cell, (0, 0)), (ID_RANGE, PRIME), strict=True))
        )
        for cell, pair in sums(SUMMED.events).items()
    }


def _late_summed() -> RunFacts:
    dropped = late(None, 0)
    kept = sums(dropped.events.only(~dropped.dropped))
    spec = replace(dropped.spec, tape=SUMMED.spec.tape)
    return replace(dropped, spec=spec, observed=replace(dropped.observed, sums=kept))


def _without_sums(cell: int) -> RunFacts:
    kept = {each: pair for each, pair in sums(SUMMED.events).items() if each != cell}
    return replace(SUMMED, observed=Observed(HONEST.log_ledger, (), kept))


def _square(number: int) -> int:
    return (number % PRIME) ** 2


def _off_by(right: Ledger, by_ms: int) -> Ledger:
    moved = ((cell(CODES.key(code), CODES.field(code) + by_ms), count) for code, count in right.items())
    return Ledger(moved)


# By the parts of expected.toml, in its order.
PARTS: Mapping[str, Callable[[], Iterable[Planted]]] = {
    "counts": counts,
    "late_events": late_events,
    "evidence": evidence,
    "faults": faults,
    "meanwhile": meanwhile.planted,
    "stopped": stopped,
    "backfills": backfills,
    "questions": questions,
    "states": states,
    "checksummed": checksummed,
    "visits": visits.planted,
    "payments": payments.planted,
    "rides": rides.planted,
    "orders": orders.planted,
    "requests": requests.planted,
    "matches": matches.planted,
    "places": places.planted,
    "rows": rows.planted,
    "readers": readers.planted,
    "week": readers.of_a_week,
    "joins": joins.planted,
    "late_reads": late_reads.planted,
}


def planted() -> Iterator[Planted]:
    """Yield all runs in the order of expected.toml."""
    return chain.from_iterable(part() for part in PARTS.values())
