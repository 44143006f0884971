"""Two sums over the ids of a cell's events, to detect a loss and a duplicate that leave the count right.

S1 is the sum of the ids modulo 2^48, the range of an id: two of them add up exactly in any language, even in Lua, whose
numbers are doubles. S2 is the sum of (id mod p)^2 modulo p, with p = 2^31 - 1. If one event is missing and one is
extra, S1 is off by the difference of their ids, which names the possible pairs, and S2 selects the pair.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.util.integers import parse_int64

ID_RANGE = 1 << 48
PRIME = (1 << 31) - 1
PREFIX = "sums:"  # hash `sums:<key>`, field `<window>` -> "S1,S2"

Ids = NDArray[np.int64]


class Checksum(NamedTuple):
    s1: int = 0
    s2: int = 0

    def __add__(self, other: object) -> Checksum:
        if not isinstance(other, Checksum):
            return NotImplemented
        return Checksum((self.s1 + other.s1) % ID_RANGE, (self.s2 + other.s2) % PRIME)

    def __str__(self) -> str:
        return f"{self.s1},{self.s2}"

    @classmethod
    def of(cls, ids: Collection[int]) -> Checksum:
        """Compute the sums event by event: the definition in plain Python."""
        return cls(sum(ids) % ID_RANGE, sum((each % PRIME) ** 2 for each in ids) % PRIME)

    @classmethod
    def read(cls, text: str) -> Checksum | None:
        """Parse a pair of sums. Return None for other text."""
        s1, s2 = map(parse_int64, parts) if len(parts := text.split(",")) == 2 else (None, None)
        if s1 is None or s2 is None:
            return None
        return cls(s1, s2) if 0 <= s1 < ID_RANGE and 0 <= s2 < PRIME else None


def by_cell(cells: NDArray[np.int64], ids: Ids) -> dict[int, Checksum]:
    """Compute the sums of many cells at once, by cell code."""
    order = np.argsort(cells, kind="stable")
    codes, begins = np.unique(cells[order], return_index=True)
    if not len(codes):
        return {}
    # 2^48 divides 2^64, so an overflow does no harm here; a cell has fewer than 2^32 events.
    s1 = np.add.reduceat(ids[order].astype(np.uint64), begins) % np.uint64(ID_RANGE)
    s2 = np.add.reduceat(squares(ids[order]), begins) % PRIME
    return {code: Checksum(*sums) for code, *sums in zip(codes.tolist(), s1.tolist(), s2.tolist(), strict=True)}


def signed(difference: int) -> int:
    """Return the number closest to 0 that is equal to this one modulo the range of an id."""
    half = ID_RANGE // 2
    return (difference + half) % ID_RANGE - half


def squares(ids: Ids) -> Ids:
    rest = ids % PRIME
    return np.asarray(rest * rest % PRIME)


class Swap(NamedTuple):
    """One missing event, and one that was counted instead of it."""

    lost: int
    extra: int


def swaps(expected: Checksum, seen: Checksum, members: Ids, others: Ids) -> tuple[list[Swap], int]:
    """Find the pairs that explain both sums, and count those that explain the first one alone.

    The missing event is a member of the cell; the extra one is one of the others.
    """
    by = (seen.s1 - expected.s1) % ID_RANGE
    lost = np.unique(members)
    extra = (lost + by) % ID_RANGE
    candidates = np.isin(extra, others) & (extra != lost)
    lost, extra = lost[candidates], extra[candidates]
    right = (squares(extra) - squares(lost) - (seen.s2 - expected.s2)) % PRIME == 0
    found = [Swap(*pair) for pair in zip(lost[right].tolist(), extra[right].tolist(), strict=True)]
    return found, len(lost)
