"""Reads an engine's late.jsonl: the events it dropped as late, each by its place in the topic, [partition, offset].

Such a line means that the event is late for all of its windows. [partition, offset, opens] means that it is late for
one window only, which opens at that time: with overlapping windows, an event may be late for one and in time for
another. If results are named by the ends of windows (`window_key = "end"`), so is this window.

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
_LINE = msgspec.json.Decoder(Annotated[list[int], msgspec.Meta(min_length=2, max_length=3)])
_PARTITIONS, _OFFSETS, _MOMENTS = range(1 << (63 - OFFSET_BITS)), range(1 << OFFSET_BITS), range(-(1 << 63), 1 << 63)


def stored(path: Path, *, dropped: int, behind_ms: int = 0) -> NamedLate:
    """Parse the file. `dropped` is the reported number of dropped events, the least number of names. `behind_ms` is the
    time from a window's start to the moment that names it."""
    names: set[tuple[int, ...]] = set()
    wrong = ""
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        if not line.strip():
            continue
        if name := _name(line):
            names.add(name)
        else:
            wrong = wrong or f"line {number} is {shown(readable(line), 40)!r}"
    record = np.array(sorted(name[0] for name in names if len(name) == 1), dtype=np.int64)
    windows = np.array(sorted(name for name in names if len(name) > 1), dtype=np.int64).reshape(-1, 2)
    windows[:, 1] -= behind_ms
    return NamedLate(record, "; ".join(_lacks(len(names), dropped, wrong)), windows)


def _lacks(named: int, dropped: int, wrong: str) -> Iterator[str]:
    """Yield reasons why the file is not exactly the list of dropped events."""
    if wrong:
        yield f"{FILE} has an invalid line; [partition, offset] or [partition, offset, opens] is expected: {wrong}"
    if named < dropped:
        yield f"{FILE} names {many(named, 'event')}, but the engine reported {dropped:,} as dropped"


def _name(line: bytes) -> tuple[int, ...]:
    """Return the record's number, and the window's start if the line has one; () if the line is invalid."""
    try:
        partition, offset, *opens = _LINE.decode(line)
    except msgspec.MsgspecError:
        return ()
    is_place = partition in _PARTITIONS and offset in _OFFSETS and all(moment in _MOMENTS for moment in opens)
    return ((partition << OFFSET_BITS) | offset, *opens) if is_place else ()
