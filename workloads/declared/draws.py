"""The values of declared fields by whole columns: pure functions of (seed, path of the field, raw draw of the event).

Any events can be drawn alone, in any order, on any machine, and are always the same. All columns are whole numbers: a
text is its index in `names`, and a decimal is a number of units of its last digit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.util.seeded_draws import Draws, Ints, Lane, between
from workloads.declared.fields import Choice, Decimal, Field, Fields, Integer, Named, Text, Time, Uuid, Zipf, leaves

# From the path of a field to its column.
Columns = Mapping[str, NDArray[Any]]

_LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz      ", dtype=np.uint8)
_PER_DRAW = 8  # letters per draw
_SHARE_BITS = 40  # bits of the share of a zipf's first key


def content(fields: Fields, seed: int, draws: Draws) -> Columns:
    """Draw all fields of events but the time."""
    return {path: column(field, seed, path, draws) for path, field in leaves(fields) if not isinstance(field, Time)}


def column(field: Field, seed: int, path: str, draws: Draws) -> NDArray[Any]:
    own = Lane.of(seed, "field", path).at(draws.view(np.int64))
    match field:
        case Uuid() | Text():
            return between(own, 0, field.of - 1).astype(np.int32)
        case Choice() | Zipf():
            return np.searchsorted(_thresholds(field), own >> np.uint64(32), side="right").astype(np.int32)
        case Integer() | Decimal():
            return between(own, field.low, field.high)
    raise AssertionError(f"nothing draws a {type(field).__name__}")


@lru_cache(maxsize=64)
def names(field: Named, seed: int, path: str) -> tuple[str, ...]:
    """Return the texts of a field by their numbers."""
    match field:
        case Choice():
            return field.values
        case Zipf():
            return tuple(f"{field.prefix}{number}" for number in range(1, field.of + 1))
        case Text():
            return _texts(field, seed, path)
    return _uuids(seed, path, field.of)


def _uuids(seed: int, path: str, count: int) -> tuple[str, ...]:
    """Version 4 UUIDs. They are written all at once for speed."""
    raw = hashlib.shake_128(f"streamgauge/{seed}/field/{path}".encode()).digest(16 * count)
    octets = np.frombuffer(raw, dtype=np.uint8).reshape(count, 16).copy()
    octets[:, 6] = octets[:, 6] & 0x0F | 0x40
    octets[:, 8] = octets[:, 8] & 0x3F | 0x80
    text = octets.tobytes().hex()
    digits = (text[at : at + 32] for at in range(0, 32 * count, 32))
    return tuple(f"{d[:8]}-{d[8:12]}-{d[12:16]}-{d[16:20]}-{d[20:]}" for d in digits)


def _texts(field: Text, seed: int, path: str) -> tuple[str, ...]:
    """No text begins or ends with a space, which a job might trim. A text that would equal an earlier one gets its
    number at the end.
    """
    numbers = np.arange(field.of, dtype=np.int64)
    lengths = between(Lane.of(seed, "text", path).at(numbers), field.shortest, field.longest).tolist()
    words = range(-(-field.longest // _PER_DRAW))
    draws = np.stack([Lane.of(seed, "text", path, word).at(numbers).astype("<u8") for word in words], axis=1)
    rows = _LETTERS[draws.view(np.uint8) & 31]
    texts: dict[str, None] = {}
    for number, (row, length) in enumerate(zip(rows, lengths, strict=True)):
        text = row.tobytes()[:length].decode().strip().ljust(length, "e")
        texts[text if text not in texts else f"{text} {number}"] = None
    return tuple(texts)


@lru_cache(maxsize=64)
def _thresholds(field: Choice | Zipf) -> NDArray[np.uint64]:
    """Value k is drawn if the upper 32 bits of the draw are below threshold k and not below threshold k - 1."""
    shares = field.weights if isinstance(field, Choice) else _zipf_shares(field)
    ends = np.cumsum(np.asarray(shares, dtype=np.int64)).tolist()
    return np.array([(end << 32) // ends[-1] for end in ends], dtype=np.uint64)


def _zipf_shares(field: Zipf) -> Ints:
    """1 / k ** (quarters / 4), by roots and products alone, because these are rounded exactly and powers are not."""
    keys = np.arange(1, field.of + 1, dtype=np.float64)
    root, power = np.sqrt(np.sqrt(keys)), np.ones(field.of)
    for _ in range(field.quarters):
        power = power * root
    return np.asarray((2.0**_SHARE_BITS / power).astype(np.int64))
