"""Tells the world how far a job is: one JSON object a line, appended and flushed. And what it set by itself, once."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

SETTINGS_FILE = "engine_settings.json"  # beside the progress


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class ProgressLog:
    """A crash may have torn the last line: start a new one, so that it costs only itself."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        if self._path.exists() and not self._path.read_bytes().endswith(b"\n"):
            self._append("\n")

    def write(self, **values: Any) -> None:
        self._append(json.dumps({"at": now_ms(), **values}) + "\n")

    def next_batch(self) -> int:
        """Of a job that keeps nothing else from one start to the next."""
        written = self._path.read_bytes().splitlines() if self._path.exists() else []
        for line in reversed(written):
            with suppress(ValueError):  # it was torn
                return int(json.loads(line)["batch"]) + 1
        return 0

    def _append(self, text: str) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(text)


def tell_settings(progress_path: str, settings: Mapping[str, str]) -> None:
    """Everything that is not as the engine ships it, for those who compare. A restart writes it anew, and whole."""
    path = Path(progress_path).with_name(SETTINGS_FILE)
    part = path.with_name(f".{SETTINGS_FILE}.part")
    part.write_text(json.dumps(dict(settings), indent=1), encoding="utf-8")
    part.replace(path)
