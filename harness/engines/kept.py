"""Copies the files in the engine's folder that the run keeps: progress, checkpoints, settings, dropped late events.

They are copied as they grow: the engine must not learn the run's path from its config, and its folder is deleted with
the run's private files, however the run ends.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

PATTERNS = ("progress*.jsonl", "late.jsonl", "checkpoints.jsonl", "engine_settings.json")
PIECE_BYTES = 1 << 20


class Kept:
    def __init__(self, folder: Path, run: Path) -> None:
        self._folder, self._run = folder, run

    def copy(self) -> None:
        """Copy the data added since the last call. The engine may be writing, and may start a file anew."""
        if self._folder == self._run:
            return
        for pattern in PATTERNS:
            for path in self._folder.glob(pattern):
                with suppress(FileNotFoundError):
                    _add(path, self._run / path.name)


def _add(source: Path, target: Path) -> None:
    known = target.stat().st_size if target.exists() else 0
    begun_anew = source.stat().st_size < known
    with source.open("rb") as reading, target.open("wb" if begun_anew else "ab") as writing:
        reading.seek(0 if begun_anew else known)
        while piece := reading.read(PIECE_BYTES):
            writing.write(piece)
