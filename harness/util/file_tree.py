"""The files below a folder, while other programs write there. Standard library only: the launcher uses it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Seen:
    """A file at the moment of a scan."""

    inode: tuple[int, int]  # with its device
    path: str
    changed_ns: int
    size_bytes: int


def files(folder: Path) -> Iterator[Seen]:
    """Yield the files below a folder, at any depth. Files and folders may vanish meanwhile."""
    waiting = [str(folder)]
    while waiting:
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                with suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    else:
                        yield _seen(entry)


def size_below(folder: Path) -> int:
    """Add up the sizes of the files below a folder."""
    return sum(each.size_bytes for each in files(folder))


def _seen(entry: os.DirEntry[str]) -> Seen:
    told = entry.stat(follow_symlinks=False)
    return Seen((told.st_dev, told.st_ino), entry.path, told.st_mtime_ns, told.st_size)
