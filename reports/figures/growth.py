"""The cost of a state against its number of cells: a panel for each quantity, a dot for each report of the engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes

from reports.figures.style import DURATION, SHORT, Sheet

PANEL_PX = 112.0


@dataclass(frozen=True)
class Dots:
    """One quantity. `joined` connects the dots, for a level that goes on between two reports."""

    name: str
    cells: Sequence[int]
    values: Sequence[float]
    colour: str
    joined: bool = False


@dataclass(frozen=True)
class Panel:
    """Dots that share a unit: "ms" is written as times, all else as numbers."""

    title: str
    unit: str
    dots: tuple[Dots, ...]


def draw(panels: Sequence[Panel], sheet: Sheet) -> None:
    rows = sheet.rows([PANEL_PX] * len(panels))
    for panel, axes in zip(panels, rows, strict=True):
        _panel(axes, panel)
    rows[-1].set_xlim(left=0)
    rows[-1].xaxis.set_major_formatter(SHORT)
    rows[-1].locator_params(axis="x", nbins=5 if sheet.narrow else 9)
    rows[-1].set_xlabel("cells in the state")


def _panel(axes: Axes, panel: Panel) -> None:
    for dots in panel.dots:
        line = "-" if dots.joined else "none"
        axes.plot(
            dots.cells, dots.values, color=dots.colour, label=dots.name, linestyle=line, marker="o", markersize=3.5
        )
    axes.set_title(panel.title, fontweight="bold")
    axes.margins(y=0.12)
    axes.set_ylim(bottom=0)
    axes.locator_params(axis="y", nbins=4)
    axes.yaxis.set_major_formatter(DURATION if panel.unit == "ms" else SHORT)
    if len(panel.dots) > 1:
        axes.legend(loc="upper left")
