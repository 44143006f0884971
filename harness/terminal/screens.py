"""The screen of a command in progress: in place on a terminal, plain lines elsewhere, nothing with `--quiet`.

It goes to stderr, so that `--json` and pipes stay clean. rich is imported only where it draws, because its import is
slow. A screen hides no cursor and changes no mode of the terminal, so that nothing has to be restored after a signal.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, TextIO

from harness.terminal.progress_lines import LEAST_ROOM, Facts, Line, RunProgress, cut, fitted, note_lines, wrapped
from harness.util.local_time import local

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

PLAIN_EVERY_S, ROWS_EVERY_S = 10.0, 15.0
REDRAWN_PER_S = 4


class Screen(Protocol):
    """A display of the progress of a run, or of several parallel ones."""

    def phase(self, name: str, waits_for: str = "") -> None: ...
    def update(self, facts: Facts) -> None: ...
    def show(self, rows: Sequence[str]) -> None: ...


class NullScreen:
    """A screen without output."""

    def phase(self, name: str, waits_for: str = "") -> None: ...
    def update(self, facts: Facts) -> None: ...
    def show(self, rows: Sequence[str]) -> None: ...


class PlainScreen:
    """A line at each phase, and one every few seconds during it. `tell` prints a line."""

    def __init__(
        self,
        tell: Callable[[str], None] | None = None,
        every_s: float = PLAIN_EVERY_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._run, self._tell = RunProgress(clock), tell or say
        self._every_s, self._clock = every_s, clock
        self._printed_s = clock()

    def phase(self, name: str, waits_for: str = "") -> None:
        self._run.phase(name, waits_for)
        self._print(self._run.begin_line())

    def update(self, facts: Facts) -> None:
        self._run.update(facts)
        if self._clock() - self._printed_s >= self._every_s:
            self._print(self._run.line())

    def show(self, rows: Sequence[str]) -> None:
        """Print all rows every few seconds."""
        if self._clock() - self._printed_s >= ROWS_EVERY_S:
            for row in rows:
                self._print(row)

    def _print(self, line: str) -> None:
        self._printed_s = self._clock()
        self._tell(line)


class LiveScreen:
    """Lines that stay in place on a terminal, and are erased at the end. An experiment shows all its runs on one."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self._run = RunProgress()
        self._notes: list[str] = []
        self._rows: Sequence[str] = ()
        self._is_closed = False
        self._console = sized(Console(stderr=True))
        self._console.show_cursor = lambda show=True: show  # type: ignore[method-assign]
        self._live = Live(
            console=self._console,
            refresh_per_second=REDRAWN_PER_S,
            transient=True,
            redirect_stdout=False,
            get_renderable=self._draw,
        )

    def open(self) -> None:
        """Begin to draw. Until `close`, others print whole lines above, and find no terminal for bars of their own."""
        before = sys.stderr
        self._live.start()
        if sys.stderr is not before:
            sys.stderr.isatty = lambda: False  # type: ignore[method-assign]

    def close(self) -> None:
        """Erase the lines. rich ends whatever it drew last with a line break, which would scroll a full terminal."""
        self._is_closed = True
        self._live.stop()

    def begin(self) -> None:
        """Begin the next run of an experiment."""
        self._run, self._rows = RunProgress(), ()

    def phase(self, name: str, waits_for: str = "") -> None:
        self._run.phase(name, waits_for)
        self._live.refresh()

    def update(self, facts: Facts) -> None:
        self._run.update(facts)

    def show(self, rows: Sequence[str]) -> None:
        self._rows = rows
        self._live.refresh()

    def note(self, text: str) -> None:
        self._notes.append(text)

    def lines(self, width: int, height: int) -> list[Line]:
        """Choose and write the lines for a terminal of this size."""
        below = [Line(cut(row, width)) for row in self._rows] or self._run.lines(width)
        return fitted(note_lines(self._notes[-height:], width), below, height)

    def _draw(self) -> RenderableType:
        """Draw all lines, or none once closed. The last row of the terminal stays free for the cursor."""
        from rich.console import Group
        from rich.text import Text

        if self._is_closed:
            return Group()
        columns, rows = self._console.size
        lines = self.lines(columns, max(1, rows - 1))
        return Text("\n", no_wrap=True, overflow="crop").join(Text(line.text, style=line.style) for line in lines)


class _Shown:
    """The screen that this process has open, and whether --quiet was given."""

    live: LiveScreen | None = None
    quiet: bool = False


def quieten(quiet: bool) -> None:
    """Set whether progress is shown."""
    _Shown.quiet = quiet


def is_quiet() -> bool:
    return _Shown.quiet


@contextmanager
def progress() -> Iterator[Screen]:
    """Open the screen that fits stderr. Within an experiment, begin a new run on the screen of the experiment."""
    if live := _Shown.live:
        live.begin()
        yield live
        live.begin()
    elif _Shown.quiet or not is_able(sys.stderr):
        yield NullScreen() if _Shown.quiet else PlainScreen()
    else:
        _Shown.live = screen = LiveScreen()
        try:
            screen.open()
            yield screen
        finally:
            _Shown.live = None
            screen.close()


def sized(console: Console) -> Console:
    """Return the console with a size. rich takes COLUMNS=0 at its word, and then writes nothing."""
    from rich.console import ConsoleDimensions

    if not all(console.size):
        console.size = ConsoleDimensions(*shutil.get_terminal_size())
    return console


def is_able(stream: TextIO) -> bool:
    """Return whether this is a terminal that can redraw lines. One without a name is taken for one that can't."""
    return stream.isatty() and os.environ.get("TERM", "").lower() not in ("", "dumb", "unknown")


def note(text: str) -> None:
    """Report progress: on the open screen if there is one, else as a line; not at all with --quiet."""
    if _Shown.live:
        _Shown.live.note(local(text))
    elif not _Shown.quiet:
        say(text)


def say(text: str) -> None:
    """Print a sentence that stays, also with --quiet."""
    print(fit_to_terminal(local(text), sys.stderr), file=sys.stderr, flush=True)


def fit_to_terminal(text: str, stream: TextIO) -> str:
    """Wrap lines between words if people read them on a terminal; in a pipe each line stays as it is."""
    width = room(stream)
    if width is None:
        return text
    return "\n".join(part for line in text.split("\n") for part in wrapped(line, width))


def room(stream: TextIO) -> int | None:
    """Return the columns for a line if people read it on a terminal; None elsewhere. A terminal that does not know its
    width has 80.
    """
    return max(LEAST_ROOM, shutil.get_terminal_size().columns - 1) if stream.isatty() else None
