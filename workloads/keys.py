"""The key of a record: the 48 bits of its event's id as 12 lower-case hex digits, whatever the workload."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from workloads.base import NOTHING, Ints

LENGTH = 12


def encode_keys(ids: NDArray[np.uint64]) -> NDArray[np.uint8]:
    """A row of octets for each."""
    octets = ids.astype(">u8").view(np.uint8).reshape(-1, 8)[:, 2:]
    return np.frombuffer(octets.tobytes().hex().encode(), dtype=np.uint8).reshape(len(ids), LENGTH)


def read_keys(keys: Sequence[bytes | None]) -> Ints:
    """Ids from keys of 12 lower-case hex digits; -1 for any other key."""
    try:
        joined = b"".join(keys)  # type: ignore[arg-type]  # a missing key is what the exception is for
        octets = bytes.fromhex(joined.decode("ascii"))
        if octets.hex().encode() == joined and set(map(len, keys)) <= {LENGTH}:  # type: ignore[arg-type]
            wide = np.zeros((len(keys), 8), dtype=np.uint8)
            wide[:, 2:] = np.frombuffer(octets, dtype=np.uint8).reshape(-1, LENGTH // 2)
            return wide.view(">i8").ravel().astype(np.int64)
    except (TypeError, ValueError):
        pass
    return np.array([_read_key(key) for key in keys], dtype=np.int64)


def _read_key(key: bytes | None) -> int:
    if key is None or len(key) != LENGTH or key.strip(b"0123456789abcdef"):
        return NOTHING
    return int(key, 16)
