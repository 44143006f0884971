"""Figures of runs of one plan over time: a panel for each figure, a mark for each run by its verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from reports.figures.style import DURATION, GREEN, GRID, MUTED, RED, SHORT, Sheet, along, mark

PANEL_PX, LEGEND_PX = 120.0, 24.0
SMALL = 60  # more runs than this get smaller marks
# Verdict -> its colour and its mark, because some readers can't tell the colours apart.
MARKS = {"PASS": (GREEN, "o"), "FAIL": (RED, "D"), "UNKNOWN": (MUTED, "s")}
WITHOUT = "no figure"


@dataclass(frozen=True)
class Panel:
    """One figure of all runs. None: that run has none. `is_time` writes the values as times of so many ms."""

    title: str
    values: tuple[float | None, ...]
    is_time: bool = False


def draw(panels: Sequence[Panel], verdicts: Sequence[str], times: Sequence[str], sheet: Sheet) -> None:
    """`verdicts` and `times`: of each run."""
    rows = sheet.rows([PANEL_PX] * len(panels), above_px=LEGEND_PX)
    for panel, axes in zip(panels, rows, strict=True):
        _draw(panel, verdicts, axes)
    along(rows[-1], times, sheet)
    rows[-1].set_xlabel("runs, by time (UTC)")
    marks = [mark(colour, shape, verdict) for verdict, (colour, shape) in MARKS.items()]
    marks.append(mark(MUTED, "x", WITHOUT))
    sheet.figure.legend(handles=marks, loc="outside upper left", ncols=2 if sheet.narrow else 4)


def _draw(panel: Panel, verdicts: Sequence[str], axes: Axes) -> None:
    size = 5.0 if len(verdicts) <= SMALL else 3.0
    known = [(index, value) for index, value in enumerate(panel.values) if value is not None]
    axes.plot([index for index, _ in known], [value for _, value in known], color=GRID, linewidth=1.0)
    for verdict, (colour, shape) in MARKS.items():
        own = [(index, value) for index, value in known if verdicts[index] == verdict]
        axes.plot([index for index, _ in own], [value for _, value in own], shape, color=colour, markersize=size)
        without = [index for index, value in enumerate(panel.values) if value is None and verdicts[index] == verdict]
        axes.plot(without, [0.06] * len(without), "x", color=colour, transform=axes.get_xaxis_transform())
    axes.set_title(panel.title, fontweight="bold")
    axes.set_ylim(0, 1.15 * max((value for _, value in known), default=0) or 1)
    axes.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_formatter(DURATION if panel.is_time else SHORT)
