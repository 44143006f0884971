"""State: the engine's state after some of its batches, read with its own reader from a copy of the checkpoint.

After a batch the state must hold each cell that has events below the batch's offsets, not dropped as late, and whose
window's end the batch's watermark has not passed; with all of these events. Each such cell must be in the results too,
which a batch writes before it is committed. For Flink a checkpoint is such a batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from harness.evidence.ledger import Ledger
from harness.evidence.observed import NO_BATCH, State
from harness.judging.checks.case import EXAMPLES, RunFacts, failed, join
from harness.judging.lateness import below, between
from harness.model import CheckResult, KeptState, Outcome, Witness
from harness.util.texts import many
from workloads.base import Mask

# The first kind found is reported, because it explains those after it.
OLD, FORGOTTEN, HELD_BACK, WRONG, NOT_EVICTED = "old state", "forgotten", "held back", "wrong state", "not evicted"
SAID = {
    OLD: "the state was that of an earlier batch, which is wrong for {}",
    FORGOTTEN: "the state lacked {}, whose next events begin anew",
    HELD_BACK: "the state held {} that the results do not have",
    WRONG: "the state was wrong for {}",
    NOT_EVICTED: "the state still held {} that the watermark had passed",
}


@dataclass(frozen=True)
class Odd:
    """One wrong cell of a state, or an entry that is no cell."""

    word: str
    batch: int
    cell: int | str
    expected: int
    seen: int | str


def check(case: RunFacts) -> CheckResult:
    if not case.spec.states:
        return CheckResult("state", Outcome.PASS, "not requested")
    if why := unknown(case):
        return CheckResult("state", Outcome.UNKNOWN, why, word="no state", blame="evidence")
    found = [odd for state in case.states for odd in odds(case, state)]
    word = next((word for word in SAID if any(odd.word == word for odd in found)), "")
    if not word:
        return CheckResult("state", Outcome.PASS, _right(case))
    told = [odd for odd in found if odd.word == word]
    cells = many(len({odd.cell for odd in told}), "cell")
    sentence = f"{SAID[word].format(cells)}, {_after(odd.batch for odd in told)}"
    return failed("state", sentence, len(told), (_witness(case, odd) for odd in told[:EXAMPLES]), word)


def unknown(case: RunFacts) -> str:
    """Return why the state can't be judged; "": it can."""
    if case.states_unread:
        return f"it was stored but could not be read: {case.states_unread}"
    if not case.states:
        return "no batch finished while its state could be copied"
    if not case.exact and case.census.permitted:
        return "no file names the events that were dropped as late, so the expected state is unknown"
    return ""


def _right(case: RunFacts) -> str:
    cells = sum(len(state.held.counts) for state in case.states)
    which = _after(state.kept.batch for state in case.states)
    fewer = len(case.states) < case.spec.states
    asked = f"; {case.spec.states} were requested, but no more batches ended before the load was done" if fewer else ""
    return f"{many(cells, 'cell')} in {many(len(case.states), 'state')} match the log, {which}{asked}"


def _after(batches: Iterable[int]) -> str:
    known = sorted({*batches})
    return f"after {'batch' if len(known) == 1 else 'batches'} {join(known, limit=10)}"


def expected_in(case: RunFacts, state: State) -> Ledger:
    """Compute the expected content of a state from the log."""
    return case.fold(_held(case, _taken(case, state.kept), state.kept.watermark_ms))


def odds(case: RunFacts, state: State) -> Iterator[Odd]:
    kept, seen = state.kept, state.held.counts
    expected = expected_in(case, state)
    unlike = sorted(cell for cell in {*expected, *seen} if expected.count(cell) != seen.count(cell))
    if unlike:
        is_old, whole = _is_of_earlier(case, state), case.fold(_taken(case, kept) & ~case.dropped)
        for cell in unlike:
            word = OLD if is_old else _word(expected.count(cell), seen.count(cell), whole.count(cell))
            yield Odd(word, kept.batch, cell, expected.count(cell), seen.count(cell))
    for stray in state.held.strays:
        yield Odd(WRONG, kept.batch, stray.where, 0, stray.value)
    if case.engine.state == "drained":
        for cell in sorted({*seen} - {*unlike} - {*case.observed.counts}):
            yield Odd(HELD_BACK, kept.batch, cell, seen.count(cell), 0)


def _word(expected: int, seen: int, whole: int) -> str:
    if not seen:
        return FORGOTTEN
    return NOT_EVICTED if not expected and seen == whole else WRONG


def _taken(case: RunFacts, kept: KeptState) -> Mask:
    """Select events by the batch's offsets.

    With older events in files, use the batch log, which covers both sources.
    """
    if case.seam is None or case.batch_log is None:
        return below(case.events, kept.ends)
    taken: Mask = (case.batch != NO_BATCH) & (case.batch <= kept.batch)
    return taken


def _held(case: RunFacts, taken: Mask, watermark_ms: int) -> Mask:
    """Select the events that are in the state, of those taken by then."""
    return taken & ~case.dropped & (case.events.closes_ms > watermark_ms)


def _is_of_earlier(case: RunFacts, state: State) -> bool:
    return any(
        case.fold(_held(case, taken, watermark_ms)) == state.held.counts
        for taken, watermark_ms in _earlier(case, state)
    )


def _earlier(case: RunFacts, state: State) -> Iterator[tuple[Mask, int]]:
    """Yield the events that each earlier batch had taken, and the watermark by which it evicted; the newest first."""
    if case.batch_log is None:
        for told in reversed(case.told):
            if told.batch < state.kept.batch:
                yield between(case.events, {}, told.offsets), told.watermark_ms
        return
    # In Spark the watermark that evicts in one batch drops late events in the next.
    known = case.batch != NO_BATCH
    for one, after in reversed([*pairwise(case.batch_log.batches)]):
        if one.batch < state.kept.batch:
            yield known & (case.batch <= one.batch), after.drop_watermark_ms


def _witness(case: RunFacts, odd: Odd) -> Witness:
    detail = f"after batch {odd.batch}"
    if isinstance(odd.cell, str):
        return Witness(odd.cell, "no such cell", str(odd.seen), detail, batches=(odd.batch,))
    where = "the results" if odd.word == HELD_BACK else "the state"
    from_ms, until_ms = case.span_of(odd.cell)
    return Witness(
        cell=case.cell_name(odd.cell),
        expected=str(odd.expected or "nothing"),
        seen=f"{odd.seen or 'nothing'} in {where}",
        detail=detail,
        batches=(odd.batch,),
        from_ms=from_ms,
        until_ms=until_ms,
    )
