"""The key of a record: the 48 bits of its event's id as 12 lower-case hex digits, whatever the workload."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from workloads.base import NOTHING, Ints, Values

LENGTH = 12


def encode_keys(ids: NDArray[np.uint64]) -> NDArray[np.uint8]:
    """Return a row of bytes for each key."""
    octets = ids.astype(">u8").view(np.uint8).reshape(-1, 8)[:, 2:]
    return np.frombuffer(octets.tobytes().hex().encode(), dtype=np.uint8).reshape(len(ids), LENGTH)


def read_keys(keys: Values) -> Ints:
    """Return the ids of keys with 12 lower-case hex digits; -1 for any other key."""
    if (keys.lengths == LENGTH).all():
        joined = keys.rows(LENGTH).tobytes()
        try:
            octets = bytes.fromhex(joined.decode("ascii"))
        except ValueError:
            octets = b""
        if octets.hex().encode() == joined:
            wide = np.zeros((len(keys), 8), dtype=np.uint8)
            wide[:, 2:] = np.frombuffer(octets, dtype=np.uint8).reshape(-1, LENGTH // 2)
            return wide.view(">i8").ravel().astype(np.int64)
    return np.array([_read_key(key) for key in keys], dtype=np.int64)


def _read_key(key: bytes | None) -> int:
    if key is None or len(key) != LENGTH or key.strip(b"0123456789abcdef"):
        return NOTHING
    return int(key, 16)
