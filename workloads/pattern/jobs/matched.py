"""The pure part of this question's jobs: the payments of a card, and the small one that waits for a large one."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from typing import NamedTuple

SMALL_BELOW, LARGE_FROM = 50, 400
WITHIN_MS = 1_000
OUTPUTS, FIRST = "outputs", "first"  # values

Payment = tuple[int, int, bool]  # event time, number, and whether it is small


class Match(NamedTuple):
    """The numbers of the small payment and of the large one."""

    first: int
    last: int


def is_asked(amount: float) -> bool:
    """Return whether a payment is small or large. All others are passed over."""
    return is_small(amount) or amount >= LARGE_FROM


def is_small(amount: float) -> bool:
    return amount < SMALL_BELOW


class Card:
    """The small and large payments of a card that wait for the watermark, and the newest small one behind it.

    A timer fires for each waiting payment, at its own time, and one when the small payment is too old for a match.
    """

    def __init__(self, small_at: int = 0, small: int = 0, waiting: Iterable[Payment] = ()) -> None:
        """`small_at`: 0 if no small payment waits for a large one."""
        self.small_at, self.small = small_at, small
        self.waiting = list(waiting)
        heapify(self.waiting)

    @property
    def next_ms(self) -> int | None:
        """The time of the next timer; None: no timer is set, as for a card without a state."""
        ends_ms = [self.small_at + WITHIN_MS] if self.small_at else []
        return min([*ends_ms, *(at_ms for at_ms, *_ in self.waiting[:1])], default=None)

    def pay(self, payment: Payment) -> None:
        heappush(self.waiting, payment)

    def fire(self, until_ms: int) -> list[Match]:
        """Fire the timers that are due, and return the matches."""
        matches = []
        while self.waiting and self.waiting[0][0] <= until_ms:
            at_ms, event, small = heappop(self.waiting)
            if small:
                self.small_at, self.small = at_ms, event
                continue
            if self.small_at and at_ms - self.small_at < WITHIN_MS:
                matches.append(Match(self.small, event))
            self.small_at = self.small = 0
        if self.small_at and self.small_at + WITHIN_MS <= until_ms:
            self.small_at = self.small = 0
        return matches
