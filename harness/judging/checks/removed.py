"""Explain a wrong count by records that a planned fault deleted from the log, or sent in an aborted transaction."""

from __future__ import annotations

from collections.abc import Iterable

from harness.evidence.ledger import Difference, Ledger
from harness.judging.checks.case import RunFacts


def unread(case: RunFacts, short: Iterable[Difference]) -> str:
    """Kafka had lost the records before the engine read them, and the engine continued without an error."""
    if not len(case.unread):
        return ""
    exactly = Ledger((d.cell, -d.surplus) for d in short) == case.unread
    which = "exactly the" if exactly else "not just the"
    return f"{which} {case.unread.total:,} that were deleted before it had read them, {case.unread_at}"


def aborted(case: RunFacts, over: Iterable[Difference]) -> str:
    """The records were in an aborted transaction, which a reader of committed records never sees."""
    surplus = Ledger((d.cell, d.surplus) for d in over)
    if not len(case.aborted) or surplus != case.aborted:
        return ""
    return f"exactly the {surplus.total:,} of a transaction that was aborted"
