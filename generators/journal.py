"""A journal of the load that is decided during the run: an append-only file of stretches.

The harness appends a stretch before its first event is due, and removes none. Later stretches do not change earlier
events, so that those can be sent before the rest is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from harness.model import Segment

JOURNAL = "journal.jsonl"


class Stretch(msgspec.Struct, frozen=True):
    """A line of the journal. The last line is empty: nothing follows."""

    segments: tuple[Segment, ...] = ()


def append(folder: Path, segments: Sequence[Segment]) -> None:
    """Write one line at once, so that a reader sees the whole line or nothing."""
    with (folder / JOURNAL).open("ab", buffering=0) as file:
        file.write(msgspec.json.encode(Stretch(tuple(segments))) + b"\n")


def close(folder: Path) -> None:
    append(folder, ())


class Journal:
    """The journal, as far as the reader has read it."""

    def __init__(self, folder: Path) -> None:
        self.profile: tuple[Segment, ...] = ()
        self.complete = False
        self._path, self._read_bytes = folder / JOURNAL, 0

    def poll(self) -> bool:
        """Read new lines. Return True if there were any."""
        if not self._path.exists() or self._path.stat().st_size == self._read_bytes:
            return False
        with self._path.open("rb") as file:
            file.seek(self._read_bytes)
            whole = file.read().rpartition(b"\n")[0]
        self._read_bytes += len(whole) + 1 if whole else 0
        for line in whole.splitlines():
            stretch = msgspec.json.decode(line, type=Stretch)
            self.profile += stretch.segments
            self.complete |= not stretch.segments
        return bool(whole)
