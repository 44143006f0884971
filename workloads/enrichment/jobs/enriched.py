"""The pure part of this question's jobs: the windows of a user's orders, and the answer from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

LENGTH_MS = 10_000  # of a window


class Windows:
    """The number of orders of one user in each window, by the end of the window."""

    def __init__(self, orders: Mapping[int, int] | None = None) -> None:
        self.orders = Counter(orders or {})

    def add(self, ordered_at: int) -> None:
        self.orders[ordered_at - ordered_at % LENGTH_MS + LENGTH_MS] += 1

    def answer(self, ordered_at: int) -> int | None:
        """Return the orders in the newest window that ends at or before this time."""
        over = self._newest(ordered_at)
        return None if over is None else self.orders[over]

    def forget(self, watermark_ms: int) -> None:
        """Drop the windows that no order can need any more, because a newer one had ended by the watermark."""
        over = self._newest(watermark_ms)
        self.orders = Counter({ends: count for ends, count in self.orders.items() if over is None or ends >= over})

    def _newest(self, until_ms: int) -> int | None:
        return max((ends for ends in self.orders if ends <= until_ms), default=None)
