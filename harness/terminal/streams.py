"""Robust standard streams of a command.

A caller that closes a stream (`>&-`) frees its number: our next file or socket would get it, also in our children.
Therefore closed streams are opened on /dev/null before anything else. If the reader has gone (a pipe to `head -1`, a
terminal that was closed), output is dropped, and the run and the exit code of its verdict stay as they are. Only an
answer that a full disk does not take is an error. This module needs the standard library only.
"""

from __future__ import annotations

import errno
import fcntl
import io
import os
import sys
from typing import TYPE_CHECKING, TextIO

from harness.model import HarnessError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


def secure() -> None:
    """Replace the standard streams. Call it before anything else is opened."""
    for number in range(3):
        if not _usable(number):
            _lead_to_nowhere(number)
    sys.stdin = sys.stdin or open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout, sys.stderr = _lasting(1, sys.stdout, is_answer=True), _lasting(2, sys.stderr, is_answer=False)


def _usable(number: int) -> bool:
    """Some shells leave one of their scripts, which is read-only, in place of a closed stream."""
    try:
        mode = fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE
    except OSError:
        return False
    return number == 0 or mode != os.O_RDONLY


def _lead_to_nowhere(number: int) -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, number)
    os.set_inheritable(number, True)
    if nowhere != number:
        os.close(nowhere)


def _lasting(number: int, stream: TextIO | None, *, is_answer: bool) -> TextIO:
    raw = _Lasting(number, is_answer=is_answer)
    encoding, errors = (stream.encoding, stream.errors) if stream else ("utf-8", "backslashreplace")
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding=encoding, errors=errors, line_buffering=raw.isatty())


class _Lasting(io.FileIO):
    def __init__(self, number: int, *, is_answer: bool) -> None:
        super().__init__(number, "w", closefd=False)
        self._raises = is_answer
        self._nobody_reads = (
            {errno.EPIPE, errno.EIO} if self.isatty() else {errno.EPIPE}
        )  # EIO: a terminal that is gone

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            if self._raises and error.errno not in self._nobody_reads:
                self._raises = False  # Python writes again when it ends
                raise HarnessError(
                    f"The answer could not be written to standard output: {error.strerror}. Redirect it elsewhere "
                    f"and start the same command again. `streamgauge ls` shows the verdict of a run that has ended."
                ) from error
            return memoryview(data).nbytes
