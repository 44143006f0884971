"""Seeded random numbers without state: draw number i of a lane is a pure function of (seed, names, i).

A lane is a vectorised splitmix64 generator with random access: any events of a tape can be drawn alone, in any order,
in blocks, on any machine, with the same result. It uses integers and exactly rounded operations only.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Draws = NDArray[np.uint64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_UNIT = 2.0**-53


@dataclass(frozen=True)
class Lane:
    """One independent stream of 64-bit draws."""

    key: np.uint64

    @staticmethod
    def of(seed: int, *names: object) -> Lane:
        text = "/".join(str(name) for name in (seed, *names))
        return Lane(np.uint64(int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")))

    def at(self, counters: Ints) -> Draws:
        z = counters.astype(np.uint64)
        z *= _GOLDEN
        z += self.key
        z ^= z >> np.uint64(30)
        z *= _MIX_1
        z ^= z >> np.uint64(27)
        z *= _MIX_2
        z ^= z >> np.uint64(31)
        return z

    def one(self, counter: int = 0) -> Draws:
        return self.at(np.array([counter], dtype=np.int64))


def below(draws: Draws, limit: int) -> Ints:
    """Return integers in [0, limit), for limit <= 2**31. The bias is less than limit / 2**32."""
    return (((draws >> np.uint64(32)) * np.uint64(limit)) >> np.uint64(32)).astype(np.int64)


def between(draws: Draws, low: int, high: int) -> Ints:
    """Return integers in [low, high]."""
    return below(draws, high - low + 1) + low


def fires(draws: Draws, share: float) -> NDArray[np.bool_]:
    """Return True for this share of the draws: never for 0, always for 1."""
    return (draws >> np.uint64(11)) < np.uint64(int(share * 2.0**53))


def unit(draws: Draws) -> NDArray[np.float64]:
    """Return numbers in (0, 1]."""
    return ((draws >> np.uint64(11)).astype(np.float64) + 1.0) * _UNIT
