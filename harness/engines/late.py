"""Reads an engine's late.jsonl: which events it dropped as late, each by its place in the topic, [partition, offset].

It is optional. An engine that has it writes it from its first start on, names all that it dropped by when it has told
that all of the log is done, and names nothing that it counts. One that was started again may have named what it counted
afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np

from harness.judging.readings import OFFSET_BITS, NamedLate
from harness.texts import many, readable, shown

FILE = "late.jsonl"
_PLACE = msgspec.json.Decoder(tuple[int, int])
_PARTITIONS, _OFFSETS = range(1 << (63 - OFFSET_BITS)), range(1 << OFFSET_BITS)


def stored(path: Path, *, restarts: int, dropped: int) -> NamedLate:
    """`dropped`: so many it told of, which is no less than it has to name."""
    places, wrong = set(), ""
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        if line.strip():
            found = [*_place(line)]
            places.update(found)
            wrong = wrong or ("" if found else f"line {number} is {shown(readable(line), 40)!r}")
    record = np.array(sorted(places), dtype=np.int64)
    return NamedLate(record, "; ".join(_lacks(len(record), restarts, dropped, wrong)))


def _lacks(named: int, restarts: int, dropped: int, wrong: str) -> Iterator[str]:
    """Why it can't be believed to be all of them, and nothing else."""
    if restarts:
        yield f"it was started again, and may have counted what {FILE} had named before"
    if wrong:
        yield f"{FILE} has a line that names no place, as [partition, offset]: {wrong}"
    if named < dropped:
        yield f"{FILE} names {many(named, 'event')}, and it told of {dropped:,} that it dropped"


def _place(line: bytes) -> Iterator[int]:
    """As the number of its record."""
    try:
        partition, offset = _PLACE.decode(line)
    except msgspec.MsgspecError:
        return
    if partition in _PARTITIONS and offset in _OFFSETS:
        yield (partition << OFFSET_BITS) | offset
