"""Read the counters of a running HotSpot JVM, from the small file that every JDK and JRE maps into memory.

`jstat` reads the same file, but needs a JDK and is a JVM itself. The layout has been version 2.0 since Java 5.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from pathlib import Path

FOLDER = Path("/tmp")  # fixed in the JVM, independent of java.io.tmpdir
MAGIC = b"\xca\xfe\xc0\xc0"
HEADER = "4sBBBBiiqii"  # magic, byte order, major, minor, accessible, used, overflow, modified, first entry, entries
ENTRY = "iiiBBBBi"  # length, name at, vector length, type, flags, units, variability, value at
FREQUENCY = "sun.os.hrt.frequency"


def gc_s(pid: int, folder: Path = FOLDER) -> float | None:
    """Return the seconds that a JVM has spent on garbage collection since its start; None if they are unknown."""
    for path in folder.glob(f"hsperfdata_*/{pid}"):
        try:
            counters = dict(_longs(path.read_bytes()))
        except (OSError, ValueError, IndexError, struct.error):
            continue  # gone, or still being set up
        return _gc_s(counters)
    return None


def _gc_s(counters: Mapping[str, int]) -> float | None:
    ticks = [value for name, value in counters.items() if _is_gc_time(name)]
    return sum(ticks) / counters[FREQUENCY] if ticks and counters.get(FREQUENCY) else None


def _is_gc_time(name: str) -> bool:
    return name.startswith("sun.gc.collector.") and name.endswith(".time")


def _longs(content: bytes) -> Iterator[tuple[str, int]]:
    """Yield all counters with one integer value."""
    order = "<" if content[4] else ">"
    magic, *_, at, count = struct.unpack_from(order + HEADER, content)
    if magic != MAGIC:
        raise ValueError("not a file of JVM counters")
    for _ in range(count):
        length, name_at, vector, kind, *_, value_at = struct.unpack_from(order + ENTRY, content, at)
        if kind == ord("J") and vector == 0:
            name = content[at + name_at : content.index(0, at + name_at)].decode()
            yield name, struct.unpack_from(order + "q", content, at + value_at)[0]
        at += length
