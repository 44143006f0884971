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
        content = Path(path)
        torn = content.exists() and not content.read_bytes().endswith(b"\n")
        self._file = content.open("a", encoding="utf-8")
        if torn:
            self._file.write("\n")

    def write(self, **values: Any) -> None:
        self._file.write(json.dumps({"at": now_ms(), **values}) + "\n")
        self._file.flush()
