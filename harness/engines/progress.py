"""Reads an engine's progress.jsonl as it grows.

The engine may be killed in the middle of a line, and an engine of somebody else may write anything: such lines are
counted and the first one is named, and none of them ends a run.
"""

from __future__ import annotations

import json
from pathlib import Path

from harness.model import Progress


def parse(line: bytes) -> Progress:
    """One line; ValueError says in a few words what is wrong with it."""
    value = json.loads(line)
    if not isinstance(value, dict):
        raise ValueError("it is not a JSON object")
    try:
        return Progress(
            at_ms=int(value["at"]),
            batch=int(value["batch"]),
            rows=int(value["rows"]),
            offsets={int(partition): int(end) for partition, end in value["offsets"].items()},
            watermark_ms=int(value.get("watermark_ms", 0)),
            dropped=int(value.get("dropped", 0)),
        )
    except KeyError as error:
        raise ValueError(f"the key {error} is missing") from error
    except (TypeError, AttributeError) as error:
        raise ValueError(str(error)) from error


class ProgressFile:
    """The newest progress, and what was unreadable on the way to it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._position = 0
        self._line_count = 0
        self._rest = b""  # the beginning of a line whose end is not there yet
        self._newest: Progress | None = None
        self._bad_count = 0
        self._first_bad = ""

    def newest(self) -> Progress | None:
        for line in self._new_lines():
            self._line_count += 1
            if line.strip():
                self._take(line)
        return self._newest

    def notes(self) -> tuple[str, ...]:
        if not self._bad_count:
            return ()
        lines = "1 line" if self._bad_count == 1 else f"{self._bad_count} lines"
        return (f"{lines} of {self._path.name} could not be read and did not count; first: {self._first_bad}",)

    def _new_lines(self) -> list[bytes]:
        try:
            with self._path.open("rb") as file:
                file.seek(self._position)
                new = file.read()
        except FileNotFoundError:
            return []
        self._position += len(new)
        *lines, self._rest = (self._rest + new).split(b"\n")
        return lines

    def _take(self, line: bytes) -> None:
        try:
            self._newest = parse(line)
        except ValueError as error:
            self._bad_count += 1
            self._first_bad = self._first_bad or f"line {self._line_count}, {line[:80]!r}: {error}."
