"""The seam between files and Kafka: each partition as two tracks around it, with the stored and the counted records.

Records that are stored on one side but counted from the other are pale: an engine that counts them there too counts
them twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from reports.figures.style import BLUE, GREEN, INK, ORANGE, PAPER, RED, SHORT, Sheet, note

FILES, KAFKA = "files", "Kafka"
COLOURS = {FILES: BLUE, KAFKA: GREEN}
TOPS = {FILES: 0.06, KAFKA: 0.52}  # top of a track within its row
MARKS = {"dropped as late": ORANGE, "wrong": RED}
TRACK = 0.42
PALE, FULL = 0.14, 0.5
ROWS_PX, ROW_PX = 300.0, 38.0  # most for all rows, and one row
LEGEND_PX, NAME_PX = 18.0, 20.0
SIGN_PX, LEAST_PX = 8.0, 4.0  # width of a character of a batch's number, and least width of its stretch
APART_MAX = 300  # more marks side by side could not be distinguished


@dataclass(frozen=True)
class Stretch:
    """Records that one batch took from one side, as positions relative to the seam."""

    side: str
    begin: int
    end: int
    batch: str  # its number; "": the engine reports no batches
    again: bool  # it ran again after a kill


@dataclass(frozen=True)
class Row:
    """One partition: the records stored on each side, the records taken from there, and the marked ones."""

    lies: Mapping[str, tuple[int, int]]
    taken: Sequence[Stretch]
    marks: Mapping[str, Sequence[int]]


def draw(rows: Sequence[Row], sheet: Sheet) -> None:
    lines = 3 if sheet.narrow else 1
    height_px = min(ROWS_PX, ROW_PX * len(rows))
    (axes,) = sheet.rows([height_px + NAME_PX], above_px=LEGEND_PX * lines)
    begin, end = (edge(side[at] for row in rows for side in row.lies.values()) for edge, at in ((min, 0), (max, 1)))
    room_px = sheet.width_px / (end - begin or 1)  # of one record, about
    numbered = height_px >= ROW_PX * len(rows) / 2
    for number, row in enumerate(rows):
        _tracks(axes, number, row, room_px, numbered=numbered)
        _marks(axes, number, row, (end - begin) / APART_MAX)
    _frame(axes, len(rows), begin, end)
    sheet.figure.legend(handles=_legend(rows), loc="outside upper left", ncols=2 if sheet.narrow else 6)


def _tracks(axes: Axes, number: int, row: Row, room_px: float, *, numbered: bool) -> None:
    for side, (begin, end) in row.lies.items():
        _bar(axes, number, side, begin, end, alpha=PALE)
    for each in joined(row.taken, LEAST_PX / room_px):
        _bar(axes, number, each.side, each.begin, each.end, alpha=FULL, again=each.again)
        if numbered and each.batch and (each.end - each.begin) * room_px > SIGN_PX * (1 + len(each.batch)):
            middle = (each.begin + each.end) / 2, number + TOPS[each.side] + TRACK / 2
            ground = {"facecolor": PAPER, "edgecolor": "none", "pad": 0.8} if each.again else None  # it is hatched
            axes.text(*middle, each.batch, ha="center", va="center", fontsize=10, bbox=ground)


def joined(taken: Sequence[Stretch], least: float) -> list[Stretch]:
    """Merge stretches that are too narrow to be distinguished. The merged ones have no number."""
    found: list[Stretch] = []
    for each in taken:
        before = found[-1] if found else each
        if found and (before.side == each.side and before.again == each.again) and each.end - before.begin < least:
            found[-1] = replace(before, end=each.end, batch="")
        else:
            found.append(each)
    return found


def _bar(axes: Axes, number: int, side: str, begin: int, end: int, *, alpha: float, again: bool = False) -> None:
    corner, colour = (begin, number + TOPS[side]), COLOURS[side]
    axes.add_patch(Rectangle(corner, end - begin, TRACK, facecolor=colour, alpha=alpha, linewidth=0))
    if alpha == FULL:
        hatch = "////" if again else ""
        axes.add_patch(Rectangle(corner, end - begin, TRACK, fill=False, edgecolor=INK, linewidth=0.6, hatch=hatch))


def _marks(axes: Axes, number: int, row: Row, apart: float) -> None:
    """Draws one of the marks that would overlap."""
    for kind, records in row.marks.items():
        seen = np.unique(np.array(records, dtype=np.int64) // max(1, int(apart)), return_index=True)[1]
        shown = np.array(records, dtype=np.int64)[seen] + 0.5
        axes.plot(shown, [number + 0.5] * len(shown), "|", color=MARKS[kind], markersize=13, markeredgewidth=1.4)


def _frame(axes: Axes, rows: int, begin: int, end: int) -> None:
    axes.set_ylim(rows, -NAME_PX / ROW_PX)
    axes.set_xlim(begin, end)
    axes.grid(visible=False)
    axes.set_yticks([row + 0.5 for row in range(rows)], [str(row) for row in range(rows)])
    axes.tick_params(axis="y", length=0)
    axes.axvline(0, color=INK, linewidth=1.6)
    note(axes, "seam", (0, -NAME_PX / ROW_PX), (4, -2), va="top", fontweight="bold")
    axes.xaxis.set_major_formatter(SHORT)
    axes.set_ylabel("partition")
    axes.set_xlabel("records before and behind the seam")


def _legend(rows: Sequence[Row]) -> list[Patch | Line2D]:
    sides = [Patch(facecolor=colour, alpha=FULL, label=f"counted from {side}") for side, colour in COLOURS.items()]
    found: list[Patch | Line2D] = [*sides, Patch(facecolor=INK, alpha=PALE, label="lies there too")]
    if any(each.again for row in rows for each in row.taken):
        found.append(Patch(facecolor="none", edgecolor=INK, hatch="////", label="ran again"))
    for kind, colour in MARKS.items():
        if any(len(row.marks.get(kind, ())) for row in rows):
            found.append(Line2D([], [], color=colour, marker="|", linestyle="none", markersize=11, label=kind))
    return found
