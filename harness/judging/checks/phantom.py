"""Phantom: a result, even a count of 0, for a key or a window without events in the log."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from harness.evidence.ledger import Difference
from harness.evidence.observed import Glitch, Stray, Watched
from harness.judging.checks.case import EXAMPLES, RunFacts, counted, failed, join
from harness.model import CheckResult, Outcome, Witness
from harness.util.texts import many
from workloads.base import Kind

QUOTES = ("'", '"')
LONG_ENOUGH = 3  # characters: a common prefix of this length is no accident


def check(case: RunFacts) -> CheckResult:
    windows = [d for d in case.differences if d.may == 0 and case.is_empty(d.cell)]
    zeros = [cell for cell in case.observed.zeros if cell not in case.log_ledger and case.is_empty(cell)]
    unknown = [s for s in case.observed.strays if s.kind == "campaign"]
    orphans = [s for s in case.observed.strays if s.kind == "orphan"]
    visitors = _visitors(case)
    found = len(windows) + len(zeros) + len(unknown) + len(orphans) + len(visitors)
    if not found:
        return CheckResult("phantom", Outcome.PASS, "no unexpected campaign or window")
    sentence = "; ".join([*_in_the_end(case, windows, zeros, unknown, orphans), *_for_a_while(case, visitors)])
    witnesses = (
        *case.witnesses(windows),
        *(_empty(case, cell) for cell in zeros[:EXAMPLES]),
        *(Witness(s.where, "no such campaign", s.value, "orphan hash") for s in unknown[:EXAMPLES]),
        *(Witness(s.where, "a campaign that refers to it", s.value, "orphan hash") for s in orphans[:EXAMPLES]),
        *(case.glimpsed(each, "no result at all") for each in visitors[:EXAMPLES]),
    )
    return failed("phantom", sentence, found, witnesses)


def _in_the_end(
    case: RunFacts,
    windows: Sequence[Difference],
    zeros: Sequence[int],
    unknown: Sequence[Stray],
    orphans: Sequence[Stray],
) -> list[str]:
    parts = []
    cells = np.array([d.cell for d in windows], dtype=np.int64)
    matches, ranked = (int(case.are(cells, {kind}).sum()) for kind in (Kind.MATCH, Kind.RANKED))
    if matches:
        parts.append(f"{many(matches, 'match that its events do', 'matches that their events do')} not make")
    if ranked:
        parts.append(f"{many(ranked, 'value')} of what has no place")
    if others := len(windows) - matches - ranked:
        parts.append(f"{many(others, 'cell')} in which no event lies")
    if zeros:
        parts.append(f"{many(len(zeros), 'count')} of 0 in cells in which no event lies")
    if unknown:
        names = join((s.where for s in unknown), 2)
        own = f"bookkeeping = [{_own({s.where.partition('[')[0] for s in unknown})}] in its manifest names its own keys"
        parts.append(f"{many(len(unknown), 'count')} of unknown campaigns ({names}; {own})")
    if orphans:
        parts.append(f"{len(orphans):,} orphaned hashes to which no campaign refers")
    return ["the results hold " + " and ".join(parts)] if parts else []


def _own(keys: Collection[str]) -> str:
    """Suggest a manifest pattern for these keys: their common prefix, if it is long enough.

    Quote keys that could be misread.
    """
    first, last = min(keys), max(keys)
    alike = next((at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), len(first))
    if len(keys) > 1 and alike >= LONG_ENOUGH and not first.startswith(QUOTES):
        return repr(f"{first[:alike]}*")
    return first if first.startswith(QUOTES) else repr(first)


def _for_a_while(case: RunFacts, visitors: Sequence[Glitch]) -> list[str]:
    if not visitors:
        return []
    first = visitors[0]
    return [
        f"{counted(visitors, 'result')} that no event explains existed for a while, the first one, {first.where}, "
        f"{case.while_of(first)}"
    ]


def _visitors(case: RunFacts) -> list[Glitch]:
    """Find unexpected results that were seen during the run and were gone at the end."""
    if case.watched is None:
        return []
    seen, codes = case.watched, case.watched.cell
    known = {*case.log_ledger, *case.tape_ledger, *case.observed.counts, *case.observed.zeros}
    unknown = np.flatnonzero(~np.isin(codes, np.array([*known], dtype=np.int64)) & ~_explained_then(case, codes))
    cells = [unknown[codes[unknown] == code] for code in np.unique(codes[unknown])]
    visits = [_visit(case, seen, rows) for rows in cells]
    return [*visits, *(each for each in seen.strangers if each.until_us is not None)]


def _explained_then(case: RunFacts, codes: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Select cells with events that later ones took out of the results. A session may have merged with an earlier one:
    until then, each of its events could be the first. And what had a place may have lost it.
    """
    may_leave = np.ones(len(codes), dtype=np.bool_) if case.oracle.merges else case.are(codes, {Kind.RANKED})
    return may_leave & np.isin(codes, case.events.cell) if may_leave.any() else may_leave


def _visit(case: RunFacts, seen: Watched, rows: NDArray[np.intp]) -> Glitch:
    at_us, count = seen.at_us[rows], seen.count[rows]
    name = case.cell_name(int(seen.cell[rows[0]]))
    return Glitch(name, str(count.max()), int(at_us.min()), None if count[-1] else int(at_us.max()))


def _empty(case: RunFacts, cell: int) -> Witness:
    return Witness(case.cell_name(cell), "no count at all", "0", "no event of the log lies in it")
