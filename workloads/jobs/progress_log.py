"""The progress of a job, one JSON object per line, appended and flushed; and once the settings that it chose itself."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

SETTINGS_FILE = "engine_settings.json"  # in the folder of the progress file


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class ProgressLog:
    """The file of a job's progress. If a crash has torn the last line, a new line begins, so that only one line is
    lost.
    """

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        if self._path.exists() and not self._path.read_bytes().endswith(b"\n"):
            self._append("\n")

    def write(self, **values: Any) -> None:
        self._append(json.dumps({"at": now_ms(), **values}) + "\n")

    def next_batch(self) -> int:
        """Return the number after the last batch, for a job that stores nothing else between its starts."""
        written = self._path.read_bytes().splitlines() if self._path.exists() else []
        for line in reversed(written):
            with suppress(ValueError):  # a torn line
                return int(json.loads(line)["batch"]) + 1
        return 0

    def _append(self, text: str) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(text)


def tell_settings(progress_path: str, settings: Mapping[str, str]) -> None:
    """Write all settings that differ from the engine's defaults, for comparisons. A restart replaces the file as a
    whole.
    """
    path = Path(progress_path).with_name(SETTINGS_FILE)
    part = path.with_name(f".{SETTINGS_FILE}.part")
    part.write_text(json.dumps(dict(settings), indent=1), encoding="utf-8")
    part.replace(path)
