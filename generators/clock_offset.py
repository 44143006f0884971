"""How far the monotonic clock of another machine is from ours, measured by exchanges of messages. Pure.

An exchange reads our clock, then the other's, then ours again. The other reading happened somewhere between ours, so
the middle of ours is wrong by at most half of the round trip, however unequal the two ways are. Of many exchanges the
one with the smallest round trip counts. Neither NTP nor a common clock is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

EXCHANGES = 40


class Exchange(NamedTuple):
    """One exchange: our clock at its start, the other's in between, ours at its end."""

    begin_ns: int
    other_ns: int
    end_ns: int


class Offset(NamedTuple):
    """The other clock minus ours, and by how much that may be wrong."""

    ahead_ns: int
    error_ns: int


def of(exchanges: Sequence[Exchange]) -> Offset:
    """Return the offset by the exchange with the smallest round trip."""
    best = min(exchanges, key=lambda each: each.end_ns - each.begin_ns)
    middle_ns = (best.begin_ns + best.end_ns) // 2
    return Offset(best.other_ns - middle_ns, -(-(best.end_ns - best.begin_ns) // 2))


def error_ns(begin: Offset, end: Offset) -> int:
    """Return by how much a clock may be wrong that was set by `begin`, at any moment until `end` was measured.

    A clock that drifts does so in one direction, so its error is largest at one of the two ends.
    """
    return max(begin.error_ns, abs(end.ahead_ns - begin.ahead_ns) + end.error_ns)
