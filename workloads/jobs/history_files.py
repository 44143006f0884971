"""Older events of a topic in files, and the check that they hold each record once.

    2026-11-24/3-000000000000-000000000500.json.gz     the records 0 to 499 of partition 3, a line each

There is a folder for each day. The name of a file defines its content, so that a torn, missing, duplicate or foreign
file is found before anything is counted. Some engines read files by age, so the order of ages must be the order of
records.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from workloads.jobs.run_config import Config

NAME = re.compile(r"(\d+)-(\d+)-(\d+)\.json(?:\.gz)?")
PACKED = ".gz"
FEWEST_LINES = 10  # in fewer lines a file without any event is accepted, because some records are no events


class Stretch(NamedTuple):
    """The content of one file: records of a partition, from the first to before the end."""

    partition: int
    first: int
    end: int


def stretch_of(name: str) -> Stretch | None:
    """Parse a file's name; None for a foreign file."""
    match = NAME.fullmatch(name)
    stretch = Stretch(*map(int, match.groups())) if match else None
    return stretch if stretch and stretch.first < stretch.end else None


def files_of(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def refuse(config: Config, fields: Sequence[str]) -> None:
    """Exit before anything is counted if the files are wrong: engines silently skip a torn line."""
    told = config["history"]
    if wrong := wrong_with(Path(told["folder"]), dict(enumerate(told["ends"])), fields):
        sys.exit(f"The files in {told['folder']} can't be counted: {'; '.join(wrong)}. Nothing was read.")


def starting_offsets(config: Config) -> dict[str, int]:
    """Return the offsets at which to begin in Kafka."""
    told = config["history"]
    offsets = told["ends"] if told["until_ms"] is None else told["begins"]
    return {str(partition): offset for partition, offset in enumerate(offsets)}


def wrong_with(folder: Path, ends: Mapping[int, int], fields: Sequence[str]) -> list[str]:
    """List in words why these files do not hold each record below those ends once. An event has all of `fields`."""
    found = {path: stretch_of(path.name) for path in files_of(folder)}
    named = "PARTITION-FIRST-END.json with END above FIRST"
    wrong = [f"{path.name} is not named {named}" for path, stretch in found.items() if not stretch]
    known = {path: stretch for path, stretch in found.items() if stretch}
    for partition in sorted({*ends, *(stretch.partition for stretch in known.values())}):
        own = sorted((each for each in known.items() if each[1].partition == partition), key=lambda each: each[1])
        wrong += [*_gaps(own, partition, ends.get(partition, 0)), *_too_old([path for path, _ in own])]
    return [*wrong, *(f"{path.name} {why}" for path, each in known.items() if (why := _wrong_in(path, each, fields)))]


def _gaps(own: Sequence[tuple[Path, Stretch]], partition: int, end: int) -> Iterator[str]:
    """Yield sentences about records in no file, or in two."""
    border = Path(), Stretch(partition, end, end)
    for (path, one), (next_path, other) in pairwise(((Path(), Stretch(partition, 0, 0)), *own, border)):
        if one.end < other.first:
            yield f"records {one.end:,} to {other.first - 1:,} of partition {partition} are in no file"
        elif one.end > other.first and next_path.name:
            both = f"{path.name} and {next_path.name}"
            yield (
                f"records {other.first:,} to {min(one.end, other.end) - 1:,} of partition {partition} are in both "
                f"{both}"
            )
        elif one.end > other.first:
            last = f"record {one.end - 1:,}, but only {end:,} records of partition {partition} should be in files"
            yield f"{path.name} goes on to {last}"


def _too_old(own: Sequence[Path]) -> Iterator[str]:
    """An engine that reads by age takes such a file too early; then the records before it are late."""
    for before, path in pairwise(own):
        if path.stat().st_mtime_ns < before.stat().st_mtime_ns:
            yield f"{path.name} is older than {before.name}, which comes before it"


def _wrong_in(path: Path, stretch: Stretch, fields: Sequence[str]) -> str:
    wanted = stretch.end - stretch.first
    try:
        content = path.read_bytes()
        lines = (gzip.decompress(content) if path.name.endswith(PACKED) else content).split(b"\n")
    except (OSError, EOFError, zlib.error) as error:
        return f"is torn: {error}"
    if lines == [b""]:
        return f"is empty, but should hold {wanted:,} records"
    if lines.pop() != b"":
        return f"is torn: its last line, {len(lines) + 1:,} of {wanted:,}, has no end"
    if len(lines) != wanted:
        return f"holds {len(lines):,} records, but should hold {wanted:,}"
    if len(lines) < FEWEST_LINES or any(_has(line, fields) for line in lines):
        return ""
    return f"holds no event: no line has all of {', '.join(fields)}"


def _has(line: bytes, fields: Sequence[str]) -> bool:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(event, dict) and all(name in event for name in fields)
