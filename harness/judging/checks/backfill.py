"""Backfill: the same query as a batch over the stream's whole input must give the same results, except for late events.

The batch counts all events, so the two must differ by exactly those that the stream dropped as late. A batch that was
killed half-way and restarted must give the same results.
"""

from __future__ import annotations

from collections.abc import Iterator

from harness.evidence.ledger import Difference, Expectation, Ledger
from harness.evidence.observed import Observed
from harness.judging.checks.case import RunFacts, failed, join
from harness.model import CheckResult, Outcome, Witness
from harness.util.texts import many

NAME = "backfill"


def check(case: RunFacts) -> CheckResult:
    if case.backfill is None:
        return CheckResult(NAME, Outcome.PASS, "not requested")
    if case.backfill.broke_off or case.backfilled is None:
        why = case.backfill.broke_off or "the counts of the batch job could not be read"
        return CheckResult(NAME, Outcome.FAIL, f"the batch job has no result: {why}", "backfill", blame="engine")
    if wrong := _wrong(case, case.backfilled):
        few, more = (sum(max(0, sign * d.surplus) for d in wrong) for sign in (-1, 1))
        sentence = f"the batch counts {few:,} too few and {more:,} too many in {many(len(wrong), 'cell')}"
        because = _because(case, case.backfilled)
        return failed(NAME, f"{sentence}{because}", len(wrong), case.witnesses(wrong), "backfill")
    if case.spec.backfill_kill and (missed := _missed(case, case.backfilled)):
        return CheckResult(NAME, Outcome.UNKNOWN, f"the batch is right, and {missed}", "not landed", blame="evidence")
    sentence = f"{_beside_the_stream(case, case.backfilled)}{_landed(case, case.backfilled)}"
    return CheckResult(NAME, Outcome.PASS, sentence, witnesses=tuple(_late(case)))


def _wrong(case: RunFacts, seen: Observed) -> list[Difference]:
    everything = _everything(case)
    return case.doubt_in_all.widened(Expectation(everything, everything)).differences(seen.counts)


def _everything(case: RunFacts) -> Ledger:
    return case.fold(case.events.id == case.events.id)


def _because(case: RunFacts, seen: Observed) -> str:
    """A job makes this mistake if it adds to the totals that it finds."""
    half = case.half_backfilled
    if half is None or not half.counts or seen.counts - _everything(case) != half.counts:
        return ""
    return ": exactly what it had written when it was killed, so it adds to the results that it finds"


def _missed(case: RunFacts, seen: Observed) -> str:
    """Return why the requested kill proves nothing; "" if it came between the first and the last write."""
    if case.half_backfilled is None:
        return "it was not killed, because it was done before half of its results were seen"
    if 0 < len(case.half_backfilled.counts) < len(seen.counts):
        return ""
    return f"its kill does not prove anything: {_half(case.half_backfilled, seen)} were written by then"


def _landed(case: RunFacts, seen: Observed) -> str:
    if case.backfill is None or case.half_backfilled is None:
        return ""
    return f"; {case.backfill.killed}, when {_half(case.half_backfilled, seen)} were written, and it was started again"


def _half(half: Observed, seen: Observed) -> str:
    return f"{len(half.counts):,} of {many(len(seen.counts), 'cell')}"


def _beside_the_stream(case: RunFacts, seen: Observed) -> str:
    apart: Ledger = seen.counts - case.observed.counts
    if not apart:
        return f"the batch holds the same as the stream in all {many(len(seen.counts), 'cell')}"
    cells, late = many(len(apart), "cell"), case.fold(case.dropped)
    if apart != late:
        return f"the batch is right, and the stream differs from it in {cells}; other checks say why"
    more, ids = many(late.total, "event"), join(dict.fromkeys(witness.cell for witness in _late(case)))
    return f"the batch holds {more} more in {cells}: exactly those that the stream dropped as late, {ids}"


def _late(case: RunFacts) -> Iterator[Witness]:
    """Yield each event that only the batch counts; verdict.json holds all of them."""
    for row in case.dropped.nonzero()[0].tolist():
        number, cell = f"{int(case.events.id[row]):012x}", case.cell_name(int(case.events.cell[row]))
        yield Witness(f"event {number}", "counted by the batch", "dropped by the stream", cell, (number,))
