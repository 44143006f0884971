"""The guarantee card as a picture: faults down, engines and sinks across, each cell in the colour of its class with the
time until its first output. Outcomes of upgrades are drawn alike, in the colour of their word.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.patches import Patch, Rectangle

from harness.experiments.chaos import Seen
from harness.experiments.upgrade import Word
from reports.figures.style import BLUE, GREEN, INK, MUTED, ORANGE, PAPER, PURPLE, RED, SKY, Sheet

ROW_PX, NARROW_ROW_PX = 36, 66
LABEL_SIGNS, LABEL_LINES = 38, 2
LETTER_PX, ROOMY_PX, ROOM_FOR_TIME_PX = 6.5, 84, 40
Look = tuple[str, str]  # a colour, and a short sign for cells without room for a word
LOOKS: Mapping[Seen | Word, Look] = {
    Seen.EXACTLY_ONCE: (GREEN, "= 1"),
    Seen.AT_LEAST_ONCE: (SKY, "≥ 1"),
    Seen.AT_MOST_ONCE: (ORANGE, "≤ 1"),
    Seen.NONE: (RED, "none"),
    Seen.STOPPED: (BLUE, "stop"),
    Seen.STUCK: (INK, "stuck"),
    Seen.UNKNOWN: (PURPLE, "?"),
    Seen.NOT_POSSIBLE: (MUTED, "n/a"),
    Word.RIGHT: (GREEN, "="),
    Word.REFUSED: (BLUE, "stop"),
    Word.IGNORED: (SKY, "old"),
    Word.PARTIAL: (ORANGE, "part"),
    Word.RESIDUE: (MUTED, "rest"),
    Word.COLLISION: (PURPLE, "both"),
    Word.WRONG: (RED, "wrong"),
    Word.UNKNOWN: (INK, "?"),
}


@dataclass(frozen=True)
class Mark:
    """One cell."""

    fault: str
    pair: str  # engine and sink
    word: Seen | Word
    tooltip: str
    below: bool = False  # below its claim
    back: str = ""  # time until its first output


def draw(marks: Sequence[Mark], sheet: Sheet) -> None:
    faults, pairs = (list(dict.fromkeys(each)) for each in ([m.fault for m in marks], [m.pair for m in marks]))
    row_px = NARROW_ROW_PX if sheet.narrow else ROW_PX
    labels_px = 0 if sheet.narrow else min(LABEL_SIGNS, max(map(len, faults))) * LETTER_PX
    room_px = (sheet.width_px - labels_px) / len(pairs)  # of one cell, about
    steep = room_px < max(len(pair) for pair in pairs) * LETTER_PX
    across = max(len(pair) for pair in pairs) * LETTER_PX + 30 if steep else 40
    height_px = len(faults) * row_px + across + 60
    sheet.figure.set_size_inches(sheet.width_px / 72, height_px / 72)
    axes = sheet.figure.subplots()
    for number, mark in enumerate(marks):
        middle = _cell(axes, mark, (pairs.index(mark.pair), faults.index(mark.fault)), f"cell{number}", sheet)
        axes.text(*middle, _words(mark, room_px), ha="center", va="center", fontsize=10)
    _frame(axes, faults, pairs, sheet)
    axes.tick_params(axis="x", rotation=90 if steep else 0)
    _legend({mark.word for mark in marks}, sheet, signs=room_px < ROOMY_PX)


def _cell(axes: Axes, mark: Mark, at: tuple[int, int], gid: str, sheet: Sheet) -> tuple[float, float]:
    """Returns the middle of the cell, for its text."""
    (column, row), (colour, _) = at, LOOKS[mark.word]
    top = 0.08 if not sheet.narrow else 0.42
    box = Rectangle((column + 0.04, row + top), 0.92, 0.92 - top, facecolor=colour, alpha=0.35, edgecolor=colour)
    box.set_gid(gid)
    sheet.tooltips[gid] = mark.tooltip
    axes.add_patch(box)
    return column + 0.5, row + top + (0.92 - top) / 2


def _words(mark: Mark, room_px: float) -> str:
    """The legend explains the signs that replace words in narrow cells."""
    sign = LOOKS[mark.word][1] + (" !" if mark.below else "")
    name = sign if room_px < ROOMY_PX else f"{mark.word}{' !' if mark.below else ''}"
    return f"{name}\n{mark.back}" if mark.back and room_px >= ROOM_FOR_TIME_PX else name


def _frame(axes: Axes, faults: Sequence[str], pairs: Sequence[str], sheet: Sheet) -> None:
    axes.set_xlim(0, len(pairs))
    axes.set_ylim(len(faults), 0)
    axes.grid(visible=False)
    for side in axes.spines.values():
        side.set_visible(False)
    axes.xaxis.tick_top()
    axes.set_xticks([n + 0.5 for n in range(len(pairs))], pairs)
    axes.tick_params(length=0)
    if sheet.narrow:
        axes.set_yticks([])
        for row, fault in enumerate(faults):
            axes.text(0.04, row + 0.24, shortened(fault, 1), ha="left", va="center", fontsize=10)
    else:
        axes.set_yticks([n + 0.5 for n in range(len(faults))], [shortened(fault, LABEL_LINES) for fault in faults])


def shortened(text: str, lines: int) -> str:
    """Shorten a text for a picture. The tables have the whole text."""
    return "\n".join(textwrap.wrap(text, LABEL_SIGNS, max_lines=lines, placeholder="...", break_on_hyphens=False))


def _legend(there: set[Seen | Word], sheet: Sheet, *, signs: bool) -> None:
    handles = [
        Patch(facecolor=colour, alpha=0.35, edgecolor=PAPER, label=f"{sign} {word}" if signs else word)
        for word, (colour, sign) in LOOKS.items()
        if word in there
    ]
    sheet.figure.legend(handles=handles, loc="outside lower left", ncols=2 if sheet.narrow else 4)
