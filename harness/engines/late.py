"""Reads an engine's late.jsonl: the events it dropped as late, each by its place in the topic, [partition, offset].

Such a line means that the event is late for all of its windows. [partition, offset, opens] means that it is late for
one window only, which opens at that time: with overlapping windows, an event may be late for one and in time for
another. If results are named by the ends of windows (`window_key = "end"`), so is this window. An object with
`partition`, `offset` and `watermark_ms` names the watermark when the event was read: it is late for its cells that
close at this time or before, and in time for the others.

The file is optional. An engine that has it writes it from its first start on. It names all dropped events by the time
it has reported progress to the end of the log, and no event that it counts. A name is on disk before the next offset is
durable. A restarted engine may have named events that it read again and counted then: judging/lateness.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np

from harness.evidence.observed import OFFSET_BITS, NamedLate
from harness.util.texts import many, readable, shown

FILE = "late.jsonl"


class Judged(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A line with the watermark by which an event was judged."""

    partition: int
    offset: int
    watermark_ms: int


_LINE = msgspec.json.Decoder(Annotated[list[int], msgspec.Meta(min_length=2, max_length=3)] | Judged)
_PARTITIONS, _OFFSETS, _MOMENTS = range(1 << (63 - OFFSET_BITS)), range(1 << OFFSET_BITS), range(-(1 << 63), 1 << 63)


def stored(path: Path, *, dropped: int, behind_ms: int = 0) -> NamedLate:
    """Parse the file. `dropped` is the reported number of dropped events, the least number of names. `behind_ms` is the
    time from a window's start to the moment that names it."""
    names: set[tuple[int, ...]] = set()
    watermarks: dict[int, int] = {}
    wrong = ""
    for at, line in enumerate(path.read_bytes().splitlines(), 1):
        if not line.strip():
            continue
        read = _read(line)
        if read is None:
            wrong = wrong or f"line {at} is {shown(readable(line), 40)!r}"
        elif isinstance(read, Judged):
            number = _record(read.partition, read.offset)
            watermarks[number] = max(read.watermark_ms, watermarks.get(number, read.watermark_ms))
        else:
            partition, offset, *opens = read
            names.add((_record(partition, offset), *opens))
    record = np.array(sorted(name[0] for name in names if len(name) == 1), dtype=np.int64)
    windows = np.array(sorted(name for name in names if len(name) > 1), dtype=np.int64).reshape(-1, 2)
    windows[:, 1] -= behind_ms
    judged = np.array(sorted(watermarks.items()), dtype=np.int64).reshape(-1, 2)
    return NamedLate(record, "; ".join(_lacks(len(names) + len(judged), dropped, wrong)), windows, judged)


def _lacks(named: int, dropped: int, wrong: str) -> Iterator[str]:
    """Yield reasons why the file is not exactly the list of dropped events."""
    if wrong:
        yield (
            f"{FILE} has an invalid line; [partition, offset], [partition, offset, opens] or an object with partition, "
            f"offset and watermark_ms is expected: {wrong}"
        )
    if named < dropped:
        yield f"{FILE} names {many(named, 'event')}, but the engine reported {dropped:,} as dropped"


def _read(line: bytes) -> list[int] | Judged | None:
    """Return a line; None if it is invalid."""
    try:
        read = _LINE.decode(line)
    except msgspec.MsgspecError:
        return None
    numbers = [read.partition, read.offset, read.watermark_ms] if isinstance(read, Judged) else read
    partition, offset, *moments = numbers
    is_valid = partition in _PARTITIONS and offset in _OFFSETS and all(moment in _MOMENTS for moment in moments)
    return read if is_valid else None


def _record(partition: int, offset: int) -> int:
    return (partition << OFFSET_BITS) | offset
