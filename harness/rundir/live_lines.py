"""Appends lines to a run while it goes on, for readers beside it: the live page, metrics, the list of stored runs.

The lines lie in a folder of their own in the run, because they are no evidence: no check reads them, and no digest
covers them. A line is one JSON object with `at_ms`, by the run's clock, and `kind`. reports/live/state.py reads them.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import msgspec

from harness.rundir.store import append
from harness.web.live_folder import FOLDER

FILE = "lines.jsonl"


class LiveLines:
    """Appends lines. A line that can't be written is lost: readers beside a run must not end it."""

    def __init__(self, run: Path) -> None:
        self._path = run / FOLDER / FILE

    def write(self, kind: str, at_ms: int, **facts: object) -> None:
        line = msgspec.json.encode({"at_ms": at_ms, "kind": kind, **facts}) + b"\n"
        with suppress(OSError):
            self._path.parent.mkdir(exist_ok=True)
            with self._path.open("a+b", buffering=0) as file:
                append(file, line)
