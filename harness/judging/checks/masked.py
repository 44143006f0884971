"""Masked: a cell has the right count of the wrong events: one is missing, and another was counted twice.

Only sums over the ids detect that, so this check needs checksum mode. Without it, only one claim is made: a probe
key holds one event per window, so that nothing can cancel there.
"""

from __future__ import annotations

import numpy as np

from harness.evidence import checksums
from harness.evidence.checksums import Checksum
from harness.judging.checks.case import EXAMPLES, RunFacts, failed, join
from harness.judging.checks.kinds import COUNTS
from harness.model import CheckResult, Outcome, Witness
from harness.util.texts import many
from workloads.base import Kind


def check(case: RunFacts) -> CheckResult:
    if not case.spec.tape.checksum:
        return CheckResult("masked", Outcome.PASS, _not_asked(case), asked=False)
    right = _counted_right(case)
    missing = [cell for cell in right if cell not in case.observed.sums]
    if missing and case.engine.state in ("drained", "unsettled"):
        sentence = (
            f"{len(missing):,} of {many(len(right), 'cell')} that have the right count but no checksum to "
            f"prove it; checksum = true in the manifest promises checksums"
        )
        return CheckResult("masked", Outcome.UNKNOWN, sentence, "no sums", len(missing), "engine")
    expected = _expected(case)
    wrong = [cell for cell in right if case.observed.sums.get(cell, expected[cell]) != expected[cell]]
    unsure = len(case.expectation.may) - len(right) - len(case.differences)
    beside = f"; for {many(unsure, 'cell')} it is not known which events were dropped as late" if unsure > 0 else ""
    if not wrong:
        return CheckResult(
            "masked", Outcome.PASS, f"the ids of {many(len(right), 'cell')} add up as they should{beside}"
        )
    sentence = f"{many(len(wrong), 'cell holds', 'cells hold')} the right count of wrong events{beside}"
    return failed("masked", sentence, len(wrong), (_witness(case, cell, expected[cell]) for cell in wrong[:EXAMPLES]))


def covers(case: RunFacts) -> str:
    """Describe what a PASS covers. A count does not show which events it includes, unless ids are summed."""
    kinds = {value.kind for value in case.oracle.values}
    if case.spec.tape.checksum or kinds == {Kind.PER_EVENT}:
        return "to the single event"
    if kinds == {Kind.COUNT}:
        return "by the counts; one lost and one doubled in a cell cancel unseen"
    return "by the values; what leaves a value as it is goes unseen"


def _not_asked(case: RunFacts) -> str:
    words = "without checksums a loss and a duplicate in one cell cancel unseen"
    may = case.expectation.may
    single = sum(may.count(cell) == 1 for cell in may if case.oracle.codes.key(cell) >= case.oracle.probed_from)
    return (
        f"{words}, but not in the "
        f"{many(single, 'cell of a probe, which holds one event', 'cells of probes, which hold one event each')}"
        if single
        else words
    )


def _counted_right(case: RunFacts) -> list[int]:
    """Return cells with an exact expectation and the right count."""
    must, may, seen = case.allowed.must, case.only(case.allowed.may, COUNTS), case.observed.counts
    return sorted(cell for cell, count in may.items() if must.count(cell) == count == seen.count(cell))


def _expected(case: RunFacts) -> dict[int, Checksum]:
    sums = dict.fromkeys(case.expectation.may, Checksum())
    for part in case.judged:
        for cell, its in checksums.by_cell(part.events.cell[part.kept], part.events.id[part.kept]).items():
            if cell in sums:
                sums[cell] += its
    return sums


def _witness(case: RunFacts, cell: int, expected: Checksum) -> Witness:
    seen = case.observed.sums[cell]
    members = case.events.id[case.rows_of(cell)]
    pairs, candidates = checksums.swaps(expected, seen, members, members)
    if not pairs:
        pairs, candidates = checksums.swaps(expected, seen, members, np.unique(case.events.id))
    by_s1 = f"S1 is off by {checksums.signed(seen.s1 - expected.s1):+,}, which {candidates:,} pairs explain"
    if pairs:
        named = join((f"{pair.lost:012x} is missing and {pair.extra:012x} is there instead" for pair in pairs), 2)
        detail = f"{by_s1}, and S2 says: {named}"
    else:
        detail = f"{by_s1}, and S2 says that it was none of them: more than one event was exchanged"
    from_ms, until_ms = case.span_of(cell)
    return Witness(
        cell=case.cell_name(cell),
        expected=f"S1, S2 = {expected}",
        seen=str(seen),
        detail=detail,
        event_ids=tuple(f"{number:012x}" for pair in pairs[:2] for number in pair),
        from_ms=from_ms,
        until_ms=until_ms,
    )
