"""Tells the world how far a job is: one JSON object a line, appended and flushed."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any


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

    def _append(self, text: str) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(text)
