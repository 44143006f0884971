"""What a planned fault took out of the log, or put into it and took back, as the cause of a wrong count."""

from __future__ import annotations

from collections.abc import Iterable

from harness.evidence.ledger import Difference, Ledger
from harness.judging.checks.case import Case


def unread(case: Case, short: Iterable[Difference]) -> str:
    """Kafka had lost them before the engine read them, and the engine went on as if nothing had been there."""
    if not len(case.unread):
        return ""
    exactly = Ledger((d.cell, -d.surplus) for d in short) == case.unread
    which = "exactly the" if exactly else "not just the"
    return f"{which} {case.unread.total:,} that were deleted before it had read them, {case.unread_at}"


def aborted(case: Case, over: Iterable[Difference]) -> str:
    """They lay in a transaction that came to nothing; who reads only what is committed never sees them."""
    surplus = Ledger((d.cell, d.surplus) for d in over)
    if not len(case.aborted) or surplus != case.aborted:
        return ""
    return f"exactly the {surplus.total:,} of a transaction that was aborted"
