"""Reads an engine's checkpoints.jsonl: start, duration and size of each checkpoint.

The file is optional and no verdict depends on it. Unreadable lines are skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from harness.model import Checkpoint

FILE = "checkpoints.jsonl"


class _Line(msgspec.Struct):
    at: int
    took_ms: int
    bytes: int
    in_flight_bytes: int = 0
    failed: bool = False
    written_bytes: int | None = None


def stored(path: Path) -> Iterator[Checkpoint]:
    """Yield the checkpoints; none if there is no such file."""
    try:
        content = path.read_bytes()
    except OSError:
        return
    for line in content.splitlines():
        try:
            found = msgspec.json.decode(line, type=_Line)
        except (msgspec.MsgspecError, RecursionError):
            continue
        if min(found.at, found.took_ms, found.bytes, found.in_flight_bytes, found.written_bytes or 0) >= 0:
            yield Checkpoint(
                found.at,
                found.took_ms,
                found.bytes,
                found.in_flight_bytes,
                failed=found.failed,
                written_bytes=found.written_bytes,
            )
