"""Checks on an engine's first progress lines, before any load, that their times are in milliseconds since 1970.

It also reads lines that the progress parser refuses: a time that is no number, or too large, is such a mistake.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from harness.engines.progress import FILE, number
from harness.util.texts import shown

EXPECTED = "milliseconds since 1970 are expected"
# Allowed offset of another machine's clock.
ROOM_MS = 10 * 60_000
UNITS = {"seconds": 1e3, "microseconds": 1e-3, "nanoseconds": 1e-6}  # -> factor to milliseconds


def progress_lines(folder: Path) -> list[bytes]:
    """Return whole lines only: the last one may still be written."""
    path = folder / FILE
    return path.read_bytes().split(b"\n")[:-1] if path.is_file() else []


def another_clock(lines: list[bytes], begin_ms: int, end_ms: int) -> str:
    """Describe the first line whose `at` lies outside of the run, or return ""."""
    for place, line in enumerate(lines, 1):
        try:
            told = json.loads(line)
        except (ValueError, RecursionError):
            continue  # not a progress line
        if not isinstance(told, dict) or "at" not in told:
            continue
        if why := _odd(number(told["at"]), begin_ms - ROOM_MS, end_ms + ROOM_MS):
            return f"Line {place} of {FILE} has at = {_short(told['at'])}: {EXPECTED}; {why}."
    return ""


def _odd(at: float | None, low_ms: int, high_ms: int) -> str:
    if at is None:
        return "this is not a number"
    if low_ms <= at <= high_ms:
        return ""
    units = [unit for unit, factor in UNITS.items() if low_ms <= _times(at, factor) <= high_ms]
    return f"this looks like {units[0]}" if units else "this is not within the time of the run"


def _times(at: float, factor: float) -> float:
    try:
        return at * factor
    except OverflowError:
        return float("inf")


def _short(at: Any) -> str:
    text = json.dumps(at)
    return shown(text, 40)
