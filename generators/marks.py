"""Events of the harness itself, each one of its own: a job that drops equal records must not drop any of them."""

from __future__ import annotations

from harness.model import INDEX_BITS, MARK_SERVER, Mark

_WHO = 100  # users, and pages


def mark(number: int, campaign: int, partition: int, time_ms: int, kind: str) -> Mark:
    """The mark with this number of the run: no two of 10,000 in a row have the same user on the same page."""
    page, user = divmod(number, _WHO)
    return Mark(MARK_SERVER << INDEX_BITS | number, campaign, partition, time_ms, kind, user, page % _WHO)
