"""The measured rounds of a gate over time: a panel for each metric, a series for each side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.ticker import MaxNLocator

from reports.figures.style import BLUE, ORANGE, SHORT, SKY, Sheet

PANEL_PX = 108.0
LEGEND_PX = 26.0
COLOURS = (BLUE, ORANGE, SKY)
MARKS = ("o", "s", "^")  # different marks, because some readers can't tell the colours apart


@dataclass(frozen=True)
class Series:
    """One side."""

    name: str
    seconds: tuple[float, ...]
    values: tuple[float, ...]


@dataclass(frozen=True)
class Panel:
    """One metric."""

    title: str
    series: tuple[Series, ...]


def draw(panels: Sequence[Panel], sheet: Sheet) -> None:
    rows = sheet.rows([PANEL_PX] * len(panels), above_px=LEGEND_PX)
    for panel, axes in zip(panels, rows, strict=True):
        for series, colour, mark in zip(panel.series, COLOURS, MARKS, strict=False):
            axes.plot(
                series.seconds,
                series.values,
                color=colour,
                label=series.name,
                linewidth=0.7,
                marker=mark,
                markersize=4,
            )
        axes.set_title(panel.title, fontweight="bold")
        axes.margins(y=0.12)
        axes.yaxis.set_major_locator(MaxNLocator(4))
        axes.yaxis.set_major_formatter(SHORT)
    rows[-1].set_xlabel("seconds since the first round")
    rows[0].legend(loc="lower right", bbox_to_anchor=(1.0, 1.16), ncols=3, columnspacing=1.2)
