"""Reads the files of a run while the run writes them, and makes entries of them for reports/live/state.py.

It reads files of the run's own folder only, and follows no link out of it. A line counts when it is whole: the run may
be writing it, and one that was cut off by a kill is skipped.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from reports.live.state import JUDGED, LINKS, LOG, PLAN, SPEC, VERDICT, Entry

LINES, HISTORY, JUDGED_FILE = "live/lines.jsonl", "history.jsonl", "live/judged.json"
PAGES = {"report": "report.html"}  # what a page links to, once it is there
TAIL_BYTES, TAIL_LINES, LONGEST_LINE = 32 << 10, 12, 300
MOST_LOGS = 20
ENGINE_FIRST = "engine"
MOST_BYTES = 64 << 20  # of a file that is read whole


class Follower:
    """One run's files. Each call of `entries` yields what is new since the call before."""

    def __init__(self, run: Path) -> None:
        self._run = run
        self._lines, self._history = Tail(run, LINES), Tail(run, HISTORY)
        self._versions: dict[str, tuple[int, int]] = {}  # file -> size and time of change
        self._links: dict[str, str] = {}

    def entries(self) -> Iterator[Entry]:
        yield from self.plans()
        yield from self.lines()
        yield from self.ends()

    def plans(self) -> Iterator[Entry]:
        """Yield what is known before the run begins."""
        yield from self._whole(SPEC)
        yield from self._whole(PLAN)

    def lines(self) -> Iterator[Entry]:
        """Yield what happened, in order."""
        yield from in_order(self._history.lines(), self._lines.lines())

    def ends(self) -> Iterator[Entry]:
        """Yield what files show that bear no time: they stand as they do now."""
        yield from self._logs()
        yield from self._whole(VERDICT)
        yield from self._judged()
        links = {text: name for text, name in PAGES.items() if is_own(self._run, self._run / name)}
        if links != self._links:
            self._links = links
            yield {"kind": LINKS, "links": links}

    def _whole(self, name: str) -> Iterator[Entry]:
        """Yield a file as an entry of its name."""
        if self._is_new(name) and (content := read_json(self._run / name)) is not None:
            yield {"kind": name, "content": content}

    def _judged(self) -> Iterator[Entry]:
        if self._is_new(JUDGED_FILE) and isinstance(content := read_json(self._run / JUDGED_FILE), dict):
            yield {**content, "kind": JUDGED}

    def _logs(self) -> Iterator[Entry]:
        logs = (path for path in (self._run / "logs").glob("*.log") if is_own(self._run, path))
        found = sorted(logs, key=lambda path: (ENGINE_FIRST not in path.name, path.name))
        for path in found[:MOST_LOGS]:
            if self._is_new(f"logs/{path.name}"):
                lines = tail(path)
                yield {
                    "kind": LOG,
                    "name": path.name,
                    "lines": [line[:LONGEST_LINE] for line in lines[-TAIL_LINES:]],
                    "exception": [line[:LONGEST_LINE] for line in _exception(lines)],
                }

    def _is_new(self, name: str) -> bool:
        """Return whether a file of the run is there that has changed since the last call."""
        if not is_own(self._run, self._run / name):
            return False
        try:
            found = os.lstat(self._run / name)
        except OSError:
            return False
        version = found.st_size, found.st_mtime_ns
        before, self._versions[name] = self._versions.get(name), version
        return before != version


class Tail:
    """A file of a folder to which lines are appended."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._path, self._read = folder, folder / name, 0

    def lines(self) -> list[Entry]:
        """Return the lines that are whole and new."""
        try:
            if not is_own(self._folder, self._path):
                return []
            with self._path.open("rb") as file:
                if file.seek(0, os.SEEK_END) < self._read:
                    self._read = 0  # it was replaced
                file.seek(self._read)
                whole = file.read().rpartition(b"\n")[0]
        except OSError:
            return []
        if not whole:
            return []
        self._read += len(whole) + 1
        return [entry for line in whole.split(b"\n") if (entry := _entry(line)) is not None]


def in_order(history: Sequence[Entry], lines: Sequence[Entry]) -> Iterator[Entry]:
    """Yield the entries of both files by time. The lines are the clock: a simulated run has another than its files."""
    waiting = sorted((entry for entry in history if isinstance(entry.get("at_ms"), int)), key=_at_ms)
    for line in lines:
        while waiting and _at_ms(waiting[0]) <= _at_ms(line):
            yield waiting.pop(0)
        yield line
    yield from waiting


def read_json(path: Path) -> Any:
    """Read a JSON file; None if it is missing, torn or too long."""
    try:
        if not _is_file(path) or path.stat().st_size > MOST_BYTES:
            return None
        return json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None


def tail(path: Path) -> list[str]:
    """Return the last lines of a log, without the one that was cut off at the beginning."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except OSError:
        return []
    lines = text.splitlines()
    return lines[1:] if size > TAIL_BYTES else lines


def _exception(lines: Sequence[str]) -> Sequence[str]:
    from harness.engines.complaint import exception  # slow to import, and a page without a reader needs it not

    return exception(lines)


def _entry(line: bytes) -> Entry | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _at_ms(entry: Entry) -> int:
    at_ms = entry.get("at_ms")
    return at_ms if isinstance(at_ms, int) else 0


def is_own(folder: Path, path: Path) -> bool:
    """Return whether a regular file lies there, with no link on the way to it from the folder."""
    above = path.relative_to(folder).parents[:-1]  # without the folder itself
    return _is_file(path) and all(_has_kind(folder / each, stat.S_ISDIR) for each in above)


def _is_file(path: Path) -> bool:
    return _has_kind(path, stat.S_ISREG)


def _has_kind(path: Path, kind: Callable[[int], bool]) -> bool:
    try:
        return kind(os.lstat(path).st_mode)
    except OSError:
        return False
