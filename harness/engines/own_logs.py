"""Log files that an engine writes by itself, which its manifest names: `logs = ["logs/*.log"]`.

What stood there before the run is not of this run: of a file that is only added to, what was added counts. At the end
they are copied into the run's logs.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from harness.services.logs import Log, copy_end

FOLDER = "own"  # below the logs of a run, where none of our own names is


class OwnLogs:
    def __init__(self, patterns: Sequence[str], home: Path) -> None:
        self._patterns, self._home = patterns, home
        self._before = {path: _state(path) for path in self._paths()}

    def tails(self, lines: int) -> Iterator[tuple[str, list[str]]]:
        """The name of each copy and the last lines of what was written since, the newest file first."""
        for path in sorted(self._paths(), key=_written_ns, reverse=True):
            with suppress(OSError):  # an engine may remove it at any moment, or may not let us read it
                if found := Log(path).tail(lines, self._start(path)):
                    yield self._name(path), found

    def copy(self, logs: Path) -> None:
        for path in self._paths():
            with suppress(OSError):
                if self._start(path) < path.stat().st_size:
                    copy_end(path, logs / self._name(path), self._start(path))

    def _name(self, path: Path) -> str:
        """Below the logs of a run: one word for each path."""
        inside = path.relative_to(self._home) if path.is_relative_to(self._home) else path
        return f"{FOLDER}/{str(inside).strip(os.sep).replace(os.sep, '_')}"

    def _paths(self) -> list[Path]:
        wanted = (str(self._home / pattern) for pattern in self._patterns)
        found = (glob.glob(pattern, recursive=True) for pattern in wanted)  # noqa: PTH207  (Path's refuse absolute ones)
        return [path for path in sorted({Path(name) for names in found for name in names}) if path.is_file()]

    def _start(self, path: Path) -> int:
        """Where this run begins in it: another file of that name, or one that has shrunk, was begun anew."""
        inode, size = self._before.get(path, (0, 0))
        now_inode, now_size = _state(path)
        return size if inode == now_inode and size <= now_size else 0


def _state(path: Path) -> tuple[int, int]:
    """Which file it is, and how long; (0, 0) for one that is gone by now."""
    try:
        found = path.stat()
    except OSError:
        return 0, 0
    return found.st_ino, found.st_size


def _written_ns(path: Path) -> int:
    with suppress(OSError):
        return path.stat().st_mtime_ns
    return 0
