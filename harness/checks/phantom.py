"""Phantom: results for a campaign or a window in which no event of the log lies, a count of 0 among them."""

from __future__ import annotations

from harness.checks.case import EXAMPLES, Case, join
from harness.ledger import Cell
from harness.model import CheckResult, Outcome, Witness


def check(case: Case) -> CheckResult:
    windows = [d for d in case.differences if d.may == 0]
    zeros = [cell for cell in case.observed.zeros if cell not in case.log_ledger]
    campaigns = [s for s in case.observed.strays if s.kind == "campaign"]
    orphans = [s for s in case.observed.strays if s.kind == "orphan"]
    found = len(windows) + len(zeros) + len(campaigns) + len(orphans)
    if not found:
        return CheckResult("phantom", Outcome.PASS, "no campaign and no window that nobody expects")
    parts = []
    if windows:
        parts.append(f"{len(windows):,} cells in which no event lies")
    if zeros:
        parts.append(f"{len(zeros):,} counts of 0 in cells in which no event lies")
    if campaigns:
        parts.append(f"{len(campaigns):,} counts of unknown campaigns ({join((s.where for s in campaigns), 2)})")
    if orphans:
        parts.append(f"{len(orphans):,} orphaned hashes to which no campaign refers")
    return CheckResult(
        "phantom",
        Outcome.FAIL,
        "the results hold " + " and ".join(parts),
        word="phantom",
        count=found,
        blame="engine",
        witnesses=(
            *case.witnesses(windows),
            *(_empty(case, cell) for cell in zeros[:EXAMPLES]),
            *(Witness(s.where, "no such campaign", s.value, "orphan hash") for s in campaigns[:EXAMPLES]),
            *(Witness(s.where, "a campaign that refers to it", s.value, "orphan hash") for s in orphans[:EXAMPLES]),
        ),
    )


def _empty(case: Case, cell: Cell) -> Witness:
    return Witness(case.cell_name(cell), "no count at all", "0", "no event of the log lies in it")
