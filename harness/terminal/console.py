"""Output for people during and after a run: progress on a terminal, plain lines in a pipe.

Everything but a command's own answer goes to stderr, so that `--json` and pipes stay clean. rich is imported only where
it draws, because its import is slow and most output does not need it.
"""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from typing import TYPE_CHECKING, Protocol, TextIO

from harness.model import Outcome

if TYPE_CHECKING:
    from rich.text import Text

COLOURS = {Outcome.PASS: "bold green", Outcome.FAIL: "bold red", Outcome.UNKNOWN: "bold yellow"}
PLAIN_EVERY_S, BOARD_EVERY_S = 5.0, 15.0
BAR_WIDTH = 24
NARROWEST = 7  # least width of a column


class Progress(Protocol):
    """A progress display that can be opened and closed."""

    def phase(self, name: str, detail: str = "") -> None: ...
    def update(self, facts: Mapping[str, str | float | int]) -> None: ...
    def close(self) -> None: ...


@contextmanager
def progress() -> Iterator[Progress]:
    """Open the progress display that fits stderr."""
    screen: Progress = LiveProgress() if _is_able(sys.stderr) else PlainProgress()
    try:
        yield screen
    finally:
        screen.close()


def _is_able(stream: TextIO) -> bool:
    """A terminal without a name is taken for one that can only print lines."""
    return stream.isatty() and os.environ.get("TERM", "").lower() not in ("", "dumb", "unknown")


class _State:
    """The state of both displays: phase, elapsed time, rates between two updates."""

    def __init__(self) -> None:
        self.began_s = time.monotonic()
        self.name, self.detail = "", ""
        self.facts: Mapping[str, str | float | int] = {}
        self._before: tuple[float, int, int] | None = None
        self._rates = (0.0, 0.0)

    def update(self, facts: Mapping[str, str | float | int]) -> None:
        now_s, sent, done = float(facts["now_ms"]) / 1000, int(facts["sent"]), int(facts["done"])
        if self._before is None or now_s - self._before[0] >= 1.0:
            if self._before:
                past = now_s - self._before[0]
                self._rates = ((sent - self._before[1]) / past, max(0.0, (done - self._before[2]) / past))
            self._before = (now_s, sent, done)
        self.facts = facts

    def head(self) -> str:
        return f"{time.monotonic() - self.began_s:5.0f} s  {self.name:<9}"

    def counts(self) -> list[str]:
        """The progress of load and engine; empty outside of these phases."""
        if self.name not in ("warm-up", "load", "drain") or not self.facts:
            return []
        sent, planned, done = (int(self.facts[key]) for key in ("sent", "planned", "done"))
        offered, processed = self._rates
        told = [f"{_bar(sent / max(1, planned))} sent {sent:,} ({offered:,.0f}/s)"]
        if done >= 0:  # below zero: the engine reports no progress
            told.append(f"done {done:,} ({processed:,.0f}/s), backlog {max(0, sent - done):,}")
        return told

    def fault(self) -> str:
        return str(self.facts.get("fault", ""))

    def line(self) -> str:
        fault = f"fault {self.fault()}" if self.fault() else ""
        words = self.counts() or [self.detail]
        return f"{self.head()} {', '.join([*words, fault]).strip(', ')}"


class LiveProgress:
    """A few lines that stay in place on a terminal."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self._state = _State()
        self._live = Live(console=Console(stderr=True), refresh_per_second=8, transient=True, get_renderable=self._draw)
        self._live.start()
        self._live.console.show_cursor()  # a hidden one stays hidden after Ctrl-Z, and when the harness is killed

    def phase(self, name: str, detail: str = "") -> None:
        self._state.name, self._state.detail = name, detail

    def update(self, facts: Mapping[str, str | float | int]) -> None:
        self._state.update(facts)

    def close(self) -> None:
        self._live.stop()

    def _draw(self) -> Text:
        from rich.text import Text

        state, indent = self._state, " " * 19
        text = Text(f"{state.head()} {state.detail}", overflow="fold")
        for line in state.counts():
            text.append(f"\n{indent}{line}")
        if state.fault():
            text.append(f"\n{indent}{state.fault()}", style="magenta")
        return text


class PlainProgress:
    """A line at each phase, and one every few seconds during it. `tell` prints a line."""

    def __init__(self, tell: Callable[[str], None] | None = None) -> None:
        self._state, self._tell = _State(), tell or say
        self._printed_s = 0.0

    def phase(self, name: str, detail: str = "") -> None:
        self._state.name, self._state.detail, self._state.facts = name, detail, {}
        self._print()

    def update(self, facts: Mapping[str, str | float | int]) -> None:
        self._state.update(facts)
        if time.monotonic() - self._printed_s >= PLAIN_EVERY_S:
            self._print()

    def close(self) -> None:
        pass

    def _print(self) -> None:
        self._printed_s = time.monotonic()
        self._tell(self._state.line())


class Board(Protocol):
    """A line for each of several parallel tasks."""

    def show(self, lines: Sequence[str]) -> None: ...
    def close(self) -> None: ...


@contextmanager
def board() -> Iterator[Board]:
    """Open the board that fits stderr."""
    found: Board = LiveBoard() if _is_able(sys.stderr) else PlainBoard()
    try:
        yield found
    finally:
        found.close()


class LiveBoard:
    """Lines that stay in place on a terminal, below other output. Long lines are cut."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self._live = Live(console=Console(stderr=True), auto_refresh=False, transient=True)
        self._live.start()
        self._live.console.show_cursor()

    def show(self, lines: Sequence[str]) -> None:
        from rich.text import Text

        text = Text("\n".join(lines), no_wrap=True, overflow="ellipsis")
        self._live.update(text, refresh=True)

    def close(self) -> None:
        self._live.stop()


class PlainBoard:
    """All lines every few seconds."""

    def __init__(self) -> None:
        self._printed_s = time.monotonic()

    def show(self, lines: Sequence[str]) -> None:
        if time.monotonic() - self._printed_s >= BOARD_EVERY_S:
            self._printed_s = time.monotonic()
            for line in lines:
                say(line)

    def close(self) -> None:
        pass


def show_result(lines: Sequence[str], outcome: Outcome) -> None:
    """Print the last screen. On a terminal the first line has the colour of the verdict."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True, color_system="auto" if _is_able(sys.stdout) else None)
    width = shutil.get_terminal_size().columns - 1 if sys.stdout.isatty() else None
    for number, line in enumerate(lines):
        for part in narrowed(line, width):
            console.print(Text(part, style=COLOURS[outcome] if number == 0 else ""))


def narrowed(line: str, width: int | None) -> list[str]:
    """Wrap a line to the terminal's width with its own indent. A long word stays whole."""
    if width is None or len(line) <= width:
        return [line]
    indent = " " * (len(line) - len(line.lstrip()))
    return textwrap.wrap(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def table(rows: Sequence[Sequence[str]], header: Sequence[str]) -> str:
    """Lay out columns as wide as their widest cell. On a terminal the widest columns are wrapped until a line fits;
    nothing is cut.
    """
    return fitted_table(rows, header, shutil.get_terminal_size().columns - 1 if sys.stdout.isatty() else None)


def fitted_table(rows: Sequence[Sequence[str]], header: Sequence[str], width: int | None) -> str:
    """Lay out a table for a known width; None: no limit."""
    widths = _fitted([max(len(row[i]) for row in [header, *rows]) for i in range(len(header))], width)
    lines: list[str] = []
    for row in [header, *rows]:
        cells = [textwrap.wrap(cell, w, break_on_hyphens=False) or [""] for cell, w in zip(row, widths, strict=True)]
        for parts in zip_longest(*cells, fillvalue=""):
            lines.append("  ".join(part.ljust(w) for part, w in zip(parts, widths, strict=True)).rstrip())
    return "\n".join(lines)


def _fitted(widths: Sequence[int], room: int | None) -> list[int]:
    """The widest column shrinks first, down to a least width."""
    fitted = [max(1, width) for width in widths]
    while room is not None and sum(fitted) + 2 * (len(fitted) - 1) > room and max(fitted) > NARROWEST:
        fitted[fitted.index(max(fitted))] -= 1
    return fitted


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _bar(share: float) -> str:
    full = round(BAR_WIDTH * min(1.0, share))
    return "[" + "#" * full + "." * (BAR_WIDTH - full) + "]"
