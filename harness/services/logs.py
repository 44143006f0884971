"""Limits the size of a child's log: its beginning and its end are kept, the middle is cut out.

The child writes to the file itself, without a pipe of ours that could slow it down or break. So a log can only be cut
after it has grown: one thread checks all logs many times a second. A file in append mode may be cut at any moment, and
the next line goes to its new end.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

MOST_BYTES = 32 << 20
HEAD_BYTES = 8 << 20
END_BYTES = 1 << 20
TAIL_BYTES = 64 << 10
MOST_COPIES = 8  # an endless flood always has more to copy
LINE_CHARACTERS = 2000
LONGEST_LINE_BYTES = 16 << 10  # limit of the search for the start of a line
POLL_EVERY_S = 0.1


class Log:
    """The file to which one child appends."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._cut_bytes = 0
        self._lock = threading.Lock()  # no reader may look for its end while a cut moves it

    def cut(self) -> None:
        """Cut out the middle of a log that is too long: copy the end to where the beginning shall stop, with the lines
        that are written meanwhile. Only output written in the very moment of the cut is lost with the middle."""
        with self._lock, suppress(OSError), self.path.open("r+b", buffering=0) as file:
            size = file.seek(0, os.SEEK_END)
            if size <= MOST_BYTES:
                return
            read_at, write_at = _whole_line(file, size - END_BYTES), HEAD_BYTES
            self._cut_bytes += read_at - write_at
            write_at += os.pwrite(file.fileno(), self._sentence(), write_at)
            for _ in range(MOST_COPIES):
                piece = os.pread(file.fileno(), END_BYTES, read_at)
                if not piece:
                    break
                read_at += len(piece)
                write_at += os.pwrite(file.fileno(), piece, write_at)
            file.truncate(write_at)

    def tail(self, lines: int, start: int = 0) -> list[str]:
        """Return the last whole lines as plain text for terminals and XML, reading only the end of the file and nothing
        before `start`. A partial line is dropped: it has lost its level and could pass for a message."""
        with self._lock, self.path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(start, _whole_line(file, size - TAIL_BYTES)))
            text = file.read().decode(errors="replace")
        return [_plain(line) for line in text.splitlines()[-lines:]]

    def _sentence(self) -> bytes:
        return (
            f"\n... about {self._cut_bytes:,} bytes were cut out here: of a log of more than {MOST_BYTES >> 20} MiB "
            f"only the first {HEAD_BYTES >> 20} MiB and its end are kept ...\n"
        ).encode()


def copy_end(source: Path, target: Path, start: int) -> None:
    """Copy a foreign file from `start` on; if that exceeds our limit for a log, only its end."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with source.open("rb") as file, target.open("wb") as copy:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(start, _whole_line(file, size - MOST_BYTES)))
        left = size - file.tell()  # the file may grow faster than we read
        while left > 0 and (piece := file.read(min(END_BYTES, left))):
            left -= copy.write(piece)


def _whole_line(file: BinaryIO, at: int) -> int:
    """Return where the first line after this place begins; the place itself if no line ends soon."""
    if at <= 0:
        return 0
    file.seek(at - 1)
    return at + max(0, file.read(LONGEST_LINE_BYTES).find(b"\n"))


def _plain(line: str) -> str:
    shown = "".join(sign if sign.isprintable() or sign == "\t" else "\N{REPLACEMENT CHARACTER}" for sign in line)
    return shown if len(shown) <= LINE_CHARACTERS else f"{shown[:LINE_CHARACTERS]} ..."


_watched: set[Log] = set()


def watch(log: Log) -> None:
    """Keep this log short from now on."""
    _watched.add(log)
    if not any(thread.name == "logs" for thread in threading.enumerate()):
        threading.Thread(target=_watch, name="logs", daemon=True).start()


def unwatch(log: Log) -> None:
    """Cut the log a last time: its child has ended."""
    _watched.discard(log)
    log.cut()


def _watch() -> None:
    while True:
        for log in tuple(_watched):
            log.cut()
        time.sleep(POLL_EVERY_S)


os.register_at_fork(after_in_child=_watched.clear)  # the watching thread exists in the parent only
