"""The rule of patterns in plain words: which payments of a card make a match."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

Payment = tuple[int, int, bool]  # event time, event id, and whether it is small; all others are large


def matches(payments: Iterable[Payment], within_ms: int) -> dict[int, int]:
    """Return the small payment of each match by its large one. `payments` are those of a card, in any order. Copies of
    a payment are one payment.
    """
    return {
        last: first
        for (small_at, first, is_small), (at_ms, last, is_too) in pairwise(sorted(set(payments)))
        if is_small and not is_too and at_ms - small_at < within_ms
    }
