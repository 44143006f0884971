"""Files of a history, and all that can be wrong with them: it has to be said before anybody counts them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from harness.runner.world.history_files import as_lines
from workloads.jobs.history_files import Stretch, files_of, stretch_of

EVENT = b'{"ad_id": "a", "event_type": "view", "event_time": "%d"}'
BEGIN_S = 1_750_000_000
BEGIN_MS = BEGIN_S * 1000
EACH = 100  # records a file
ENDS = (600, 600)

SPOILED = [
    ("torn", "is torn: its last line, 100 of 100, has no end"),
    ("torn at a line", "holds 95 records, but should hold 100"),
    ("torn, packed", ".json.gz is torn: "),
    ("packed wrongly", ".json.gz is torn: Error -3 while decompressing data"),
    ("not packed", ".json.gz is torn: Not a gzipped file"),
    ("empty", "is empty, but should hold 100 records"),
    ("empty, packed", ".json.gz is empty, but should hold 100 records"),
    ("gone", "records 0 to 99 of partition 1 are in no file"),
    ("overlapping", "records 10 to 99 of partition 1 are in both 1-000000000000-000000000100.json and"),
    ("too far", ".json goes on to record 600, but only 600 records of partition 1 should be in files"),
    ("of another partition", ".json goes on to record 0, but only 0 records of partition 7 should be in files"),
    ("out of order", "is older than 1-000000000000-000000000100.json, which comes before it"),
    ("backwards", "1-000000000100-000000000000.json is not named PARTITION-FIRST-END.json with END above FIRST"),
    ("of another schema", "holds no event: no line has all of ad_id, event_type, event_time"),
    ("no file of it", "_SUCCESS is not named PARTITION-FIRST-END.json"),
]


def write_files(folder: Path) -> None:
    """Of two partitions, each second file packed, and as old as they come."""
    folder.mkdir()
    for partition, end in enumerate(ENDS):
        for first in range(0, end, EACH):
            kind = ".gz" if first // EACH % 2 else ""
            lines = as_lines([EVENT % (BEGIN_MS + n) for n in range(first, first + EACH)], packed=bool(kind))
            path = folder / f"{partition}-{first:012}-{first + EACH:012}.json{kind}"
            path.write_bytes(lines)
            os.utime(path, (BEGIN_S + first, BEGIN_S + first))


def spoil(folder: Path, how: str) -> None:
    plain = next(path for path in files_of(folder) if path.name.startswith("1-") and path.suffix == ".json")
    packed = next(path for path in files_of(folder) if path.name.startswith("1-") and path.suffix == ".gz")
    stretch = named(plain)
    lines = plain.read_bytes().splitlines(keepends=True)
    again = plain.with_name(f"1-{stretch.first + 10:012}-{stretch.end:012}.json")
    changes: dict[str, Callable[[], object]] = {
        "torn": lambda: plain.write_bytes(plain.read_bytes()[:-20]),
        "torn at a line": lambda: plain.write_bytes(b"".join(lines[:-5])),
        "torn, packed": lambda: packed.write_bytes(packed.read_bytes()[:-20]),
        "packed wrongly": lambda: packed.write_bytes(packed.read_bytes()[:10] + b"\xff" * 20),
        "not packed": lambda: packed.write_bytes(plain.read_bytes()),
        "empty": lambda: plain.write_bytes(b""),
        "empty, packed": lambda: packed.write_bytes(b""),
        "gone": plain.unlink,
        "overlapping": lambda: again.write_bytes(b"".join(lines[10:])),
        "too far": lambda: plain.with_name("1-000000000600-000000000601.json").write_bytes(lines[0]),
        "of another partition": lambda: plain.with_name("7-000000000000-000000000001.json").write_bytes(lines[0]),
        "out of order": lambda: os.utime(packed, (BEGIN_S - 1, BEGIN_S - 1)),
        "backwards": lambda: plain.rename(plain.with_name("1-000000000100-000000000000.json")),
        "of another schema": lambda: plain.write_bytes(b'{"user": 1}\n' * len(lines)),
        "no file of it": lambda: plain.with_name("_SUCCESS").touch(),
    }
    changes[how]()


def named(path: Path) -> Stretch:
    stretch = stretch_of(path.name)
    assert stretch
    return stretch
