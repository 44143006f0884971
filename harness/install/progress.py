"""Shows on stderr how far a preparation has come: in place on a terminal, as a line now and then in a pipe.

Where the bytes of a part can be counted, the line has a bar, the megabytes and the time left. Standard library only,
because the launcher uses this before anything is installed.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

BAR = 10  # characters
GB = 1_000_000_000
MB = 1_000_000
# Bytes are counted again after this time, or after 20 times as long as counting took.
OFTEN_S, SELDOM_S = 0.5, 2.0


def tell(sentence: str) -> None:
    print(f"streamgauge: {sentence}", file=sys.stderr, flush=True)


# ---------------------------------------------------------------- Bytes


@dataclass(frozen=True)
class Amount:
    """The bytes that a part has, and those that it will have; 0 if that is unknown."""

    done: int
    total: int = 0

    def __str__(self) -> str:
        unit, name, digits = (GB, "GB", 1) if max(self.done, self.total) >= GB else (MB, "MB", 0)
        done = f"{min(self.done, self.total or self.done) / unit:.{digits}f}"
        return f"{done} of {self.total / unit:.{digits}f} {name}" if self.total else f"{done} {name}"


@dataclass(frozen=True)
class Part:
    """A part of the work whose bytes can be counted."""

    name: str
    count: Callable[[], Amount]


class Pace:
    """Estimates the time left of a part from the bytes that came since it began to move."""

    def __init__(self, part: Part) -> None:
        self.part = part
        self.amount = Amount(0)
        self._still = (0.0, 0)  # the last time at which nothing had come yet, and the bytes of an earlier try
        self._seen = False

    def look(self, now: float) -> None:
        """Count the bytes. They never become fewer: an installer deletes its own temporary files."""
        amount = self.part.count()
        if not self._seen or amount.done <= self._still[1]:
            self._still, self._seen = (now, amount.done), True
        self.amount = Amount(max(amount.done, self.amount.done), amount.total)

    def seconds_left(self, now: float) -> float | None:
        """Return None as long as nothing has come, and where the total is unknown."""
        began, before = self._still
        come = self.amount.done - before
        if not self.amount.total or come <= 0:
            return None
        return max(0, self.amount.total - self.amount.done) * (now - began) / come

    def __str__(self) -> str:
        return f"{self.part.name} {self.amount}"


# ---------------------------------------------------------------- Lines


class Progress:
    """Shows one piece of work, or several side by side, and how long it has taken."""

    def __init__(self, what: str, parts: Sequence[Part] = (), every_s: float = 15.0) -> None:
        self.what, self.every_s = what, every_s
        self.began = time.monotonic()
        self.next_line = self.began + every_s
        self.terminal = sys.stderr.isatty()
        self._paces = [Pace(part) for part in parts]
        self._next_look = self.began
        self._width = 0

    def __enter__(self) -> Progress:
        if not self.terminal:
            tell(f"{self.what} ...")
        return self

    def tick(self) -> None:
        now = time.monotonic()
        line_is_due = not self.terminal and now >= self.next_line
        if line_is_due or now >= self._next_look:
            self._look(now)
        if self.terminal:
            self._draw(in_place(self.what, self._paces, now - self.began, self._left(now)))
        elif line_is_due:
            tell(as_line(self.what, self._paces, now - self.began, self._left(now)))
            self.next_line = now + self.every_s

    def __exit__(self, *_: object) -> None:
        if self.terminal:
            self._draw(in_place(self.what, (), time.monotonic() - self.began, None), cut=False)
            print(file=sys.stderr)

    def _look(self, now: float) -> None:
        for pace in self._paces:
            pace.look(now)
        took_s = time.monotonic() - now
        self._next_look = now + max(OFTEN_S if self.terminal else SELDOM_S, 20 * took_s)

    def _left(self, now: float) -> float | None:
        """Return the time that the slowest part will take, of those whose pace is known."""
        known = [left for pace in self._paces if (left := pace.seconds_left(now)) is not None]
        return max(known, default=None)

    def _draw(self, text: str, *, cut: bool = True) -> None:
        line = f"streamgauge: {text}"
        if cut:
            line = line[: columns() - 1]  # a longer one would wrap, and could not be overwritten
        print(f"\r{line.ljust(self._width)}", end="", file=sys.stderr, flush=True)
        self._width = len(line)


def columns() -> int:
    with suppress(OSError, ValueError):
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    return 80


def in_place(what: str, paces: Sequence[Pace], passed_s: float, left_s: float | None) -> str:
    """Format the line that a terminal shows and that the next one overwrites."""
    if not paces:
        return f"{what} ... {passed_s:.0f} s"
    filled = 0 if left_s is None else int(BAR * passed_s / max(passed_s + left_s, 0.001))
    bar = f"[{'#' * filled}{'-' * (BAR - filled)}]"
    time_left = f"{passed_s:.0f} s" if left_s is None else _time_left(left_s)
    return f"{bar} {', '.join(map(str, paces))}, {time_left}"


def as_line(what: str, paces: Sequence[Pace], passed_s: float, left_s: float | None) -> str:
    """Format a line of its own, for a pipe or a file."""
    if not paces:
        return f"{what} ... {passed_s:.0f} s so far"
    time_left = "" if left_s is None else f", {_time_left(left_s)}"
    return f"{', '.join(map(str, paces))}, {passed_s:.0f} s so far{time_left}"


def _time_left(left_s: float) -> str:
    return f"{left_s:.0f} s left" if left_s >= 1 else "nearly done"
