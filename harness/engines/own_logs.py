"""Log files that an engine writes itself and its manifest names: `logs = ["logs/*.log"]`.

Content from before the run is ignored: if a file is only appended to, the added part counts. At the end the logs are
copied into the run.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from harness.services.logs import Log, copy_end

FOLDER = "own"  # below the logs of a run, where none of our own logs lies


class OwnLogs:
    def __init__(self, patterns: Sequence[str], home: Path) -> None:
        self._patterns, self._home = patterns, home
        self._before = {path: _state(path) for path in self._paths()}

    def tails(self, lines: int) -> Iterator[tuple[str, list[str]]]:
        """Yield each copy's name and the last lines written since the start, the newest file first."""
        for path in sorted(self._paths(), key=_written_ns, reverse=True):
            with suppress(OSError):  # an engine may delete it at any moment, or deny access
                if found := Log(path).tail(lines, self._start(path)):
                    yield self._name(path), found

    def copy(self, logs: Path) -> None:
        for path in self._paths():
            with suppress(OSError):
                if self._start(path) < path.stat().st_size:
                    copy_end(path, logs / self._name(path), self._start(path))

    def _name(self, path: Path) -> str:
        """Flatten a path into one name below the run's logs."""
        inside = path.relative_to(self._home) if path.is_relative_to(self._home) else path
        return f"{FOLDER}/{str(inside).strip(os.sep).replace(os.sep, '_')}"

    def _paths(self) -> list[Path]:
        wanted = (str(self._home / pattern) for pattern in self._patterns)
        found = (glob.glob(pattern, recursive=True) for pattern in wanted)  # noqa: PTH207  (Path's refuse absolute ones)
        return [path for path in sorted({Path(name) for names in found for name in names}) if path.is_file()]

    def _start(self, path: Path) -> int:
        """Return where this run begins in the file: a replaced or shortened one was started anew."""
        inode, size = self._before.get(path, (0, 0))
        now_inode, now_size = _state(path)
        return size if inode == now_inode and size <= now_size else 0


def _state(path: Path) -> tuple[int, int]:
    """Return inode and size; (0, 0) if the file is gone."""
    try:
        found = path.stat()
    except OSError:
        return 0, 0
    return found.st_ino, found.st_size


def _written_ns(path: Path) -> int:
    with suppress(OSError):
        return path.stat().st_mtime_ns
    return 0
