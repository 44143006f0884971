"""Output for people: the result of a command on stdout, and its progress on stderr.

rich is imported only where it draws, because its import is slow and most output does not need it.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Sequence
from itertools import takewhile, zip_longest

from harness.model import Outcome
from harness.terminal.screens import fit_to_terminal, is_able, is_quiet, note, progress, quieten, room, say, sized
from harness.util.local_time import local

__all__ = [
    "fit_to_terminal",
    "fitted_table",
    "note",
    "progress",
    "quieten",
    "say",
    "show_result",
    "table",
    "verdict_only",
]

COLOURS = {Outcome.PASS: "bold green", Outcome.FAIL: "bold red", Outcome.UNKNOWN: "bold yellow"}
NARROWEST = 7  # least width of a column


def show_result(lines: Sequence[str], outcome: Outcome) -> None:
    """Print the last screen. On a terminal the first line has the colour of the verdict."""
    from rich.console import Console
    from rich.text import Text

    console = sized(Console(highlight=False, soft_wrap=True, color_system="auto" if is_able(sys.stdout) else None))
    each_alone = "\n".join(lines).split("\n")
    for number, line in enumerate(verdict_only(each_alone) if is_quiet() else each_alone):
        text = fit_to_terminal(local(line), sys.stdout)
        console.print(Text(text, style=COLOURS[outcome] if number == 0 else ""))


def verdict_only(lines: Sequence[str]) -> list[str]:
    """Return the lines for `--quiet`: the verdict, which ends at the first blank line, and the last line, which is a
    path.
    """
    verdict = list(takewhile(str.strip, lines))
    return verdict if len(verdict) == len(lines) else [*verdict, lines[-1]]


def table(rows: Sequence[Sequence[str]], header: Sequence[str]) -> str:
    """Lay out columns as wide as their widest cell. On a terminal the widest columns are wrapped until a line fits;
    nothing is cut.
    """
    return fitted_table(rows, header, room(sys.stdout))


def fitted_table(rows: Sequence[Sequence[str]], header: Sequence[str], width: int | None) -> str:
    """Lay out a table for a known width; None: no limit."""
    cells = [max((len(row[i]) for row in rows), default=0) for i in range(len(header))]
    whole = [max([cell, *map(len, name.split())]) for name, cell in zip(header, cells, strict=True)]
    widths = _fitted([max(len(name), cell) for name, cell in zip(header, cells, strict=True)], width, whole)
    lines: list[str] = []
    for row in [header, *rows]:
        wrapped = [textwrap.wrap(cell, w, break_on_hyphens=False) or [""] for cell, w in zip(row, widths, strict=True)]
        for parts in zip_longest(*wrapped, fillvalue=""):
            lines.append("  ".join(part.ljust(w) for part, w in zip(parts, widths, strict=True)).rstrip())
    return "\n".join(lines)


def _fitted(widths: Sequence[int], room: int | None, whole: Sequence[int]) -> list[int]:
    """Headers are wrapped first, because that costs one line. Then the widest column shrinks, down to a least width."""
    fitted = [max(1, width) for width in widths]
    while room is not None and sum(fitted) + 2 * (len(fitted) - 1) > room and max(fitted) > NARROWEST:
        spare = [width - need for width, need in zip(fitted, whole, strict=True)]
        fitted[spare.index(max(spare)) if max(spare) > 0 else fitted.index(max(fitted))] -= 1
    return fitted
