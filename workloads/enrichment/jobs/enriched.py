"""What any job of this question knows: what an order is, what its answer is, and how that is written. Pure."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import Counter, defaultdict

import msgspec

LENGTH_MS = 10_000  # of a window


class Order(msgspec.Struct):
    """What the question needs of an event. Without it a record is unusable."""

    user: str
    ordered_at: int


class Windows:
    """How many orders each user had in each window."""

    def __init__(self) -> None:
        self._ends: dict[str, list[int]] = defaultdict(list)  # in order
        self._orders: Counter[tuple[str, int]] = Counter()

    def add(self, order: Order) -> None:
        ends_ms = order.ordered_at - order.ordered_at % LENGTH_MS + LENGTH_MS
        if (order.user, ends_ms) not in self._orders:
            insort(self._ends[order.user], ends_ms)
        self._orders[order.user, ends_ms] += 1

    def answer(self, order: Order) -> int | None:
        """Of the newest window that ends at or before the order's own time."""
        ends = self._ends[order.user]
        over = bisect_right(ends, order.ordered_at)
        return self._orders[order.user, ends[over - 1]] if over else None


decode_order = msgspec.json.Decoder(Order).decode
