"""What a person sees on a terminal: the text that is left on it after all control sequences of a program."""

from __future__ import annotations

import fcntl
import os
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

TOKEN = re.compile(r"\x1b\[(\??[\d;]*)([A-Za-z])|[\r\n]|[^\x1b\r\n]")
REDRAWN = "\x1b[2K"  # rich erases each line before it draws it anew


class SmallTerminal:
    """A grid of rows. What scrolls out at its top is counted."""

    def __init__(self, columns: int = 80, rows: int = 24) -> None:
        self._columns, self._rows = columns, rows
        self._grid = [""]
        self._row = self._column = 0
        self.scrolled: list[str] = []

    @property
    def lines(self) -> list[str]:
        return [line.rstrip() for line in self._grid]

    def take(self, output: str) -> None:
        for found in TOKEN.finditer(output):
            if found[2]:
                self._obey(found[1], found[2])
            elif found[0] == "\r":
                self._column = 0
            elif found[0] == "\n":
                self._down()
            else:
                self._print(found[0])

    def _obey(self, number: str, what: str) -> None:
        if what == "A":
            self._row = max(0, self._row - int(number or 1))
        elif what == "K" and number == "2":
            self._grid[self._row] = ""

    def _down(self) -> None:
        self._row += 1
        if self._row == len(self._grid):
            self._grid.append("")
        if len(self._grid) > self._rows:
            self.scrolled.append(self._grid.pop(0))
            self._row -= 1

    def _print(self, letter: str) -> None:
        if self._column == self._columns:
            self._column = 0
            self._down()
        line = self._grid[self._row].ljust(self._column)
        self._grid[self._row] = line[: self._column] + letter + line[self._column + 1 :]
        self._column += 1


def frames(output: str) -> list[list[str]]:
    """All that a person sees one after the other: the lines before each redrawing, and the last ones."""
    terminal = SmallTerminal()
    seen: list[list[str]] = []
    for part in output.split(REDRAWN):
        terminal.take(part)
        seen.append(terminal.lines)
        terminal.take(REDRAWN)
    return seen


def run(
    words: Sequence[str], folder: Path, env: Mapping[str, str], deadline_s: float = 60, size: tuple[int, int] = (80, 24)
) -> tuple[int, str]:
    """Run a program on a terminal of such columns and rows, and return its exit code and all of its output. No mode of
    the terminal may be another one afterwards.
    """
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", *reversed(size), 0, 0))
    before, output, end_s = termios.tcgetattr(slave), b"", time.monotonic() + deadline_s
    program = subprocess.Popen(words, stdin=slave, stdout=slave, stderr=slave, cwd=folder, env=dict(env))
    try:
        while program.poll() is None or select.select([master], [], [], 0)[0]:
            assert time.monotonic() < end_s, output.decode(errors="replace")
            if select.select([master], [], [], 0.05)[0]:
                output += os.read(master, 65536)
        assert termios.tcgetattr(slave) == before
    finally:
        program.kill()
        program.wait()
        os.close(slave)
        os.close(master)
    return program.returncode, output.decode(errors="replace")
