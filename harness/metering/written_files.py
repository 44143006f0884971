"""Counts the bytes that were written to the files of a folder, by scans of the folder.

A deleted file keeps counting. A file that was created and deleted between two scans is missed, so an engine that keeps
only its newest checkpoint is charged for that one. If a file was overwritten and is longer than before, only its
growth counts.
"""

from __future__ import annotations

from pathlib import Path

from harness.util.file_tree import Seen, files


class WrittenFiles:
    """All files that the scans found."""

    def __init__(self) -> None:
        self._seen: dict[tuple[int, int], Seen] = {}
        self._total_bytes = 0

    def total_bytes(self, folder: Path | None) -> int | None:
        """Scan once more and return the total; None if the folder does not exist now."""
        if folder is None or not folder.is_dir():
            return None
        for each in files(folder):
            self._total_bytes += added_bytes(self._seen.get(each.inode), each)
            self._seen[each.inode] = each
        return self._total_bytes


def added_bytes(before: Seen | None, now: Seen) -> int:
    """Return how many bytes of a file are new. A renamed file keeps its modification time. File systems give the
    inode of a deleted file to a new one, which has another path and another time."""
    if before is None or (before.path != now.path and before.changed_ns != now.changed_ns):
        return now.size_bytes
    if now.size_bytes > before.size_bytes:
        return now.size_bytes - before.size_bytes
    return 0 if now.changed_ns == before.changed_ns else now.size_bytes
