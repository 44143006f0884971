"""Ratios of cost as a matrix: the engine of a row costs so many times what the engine of a column does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log

from matplotlib.patches import Rectangle

from reports.figures.style import GREEN, GRID, MUTED, ORANGE, POINTS_PER_INCH, Sheet

ROW_PX, HEAD_PX = 62, 40
STRONGEST = 0.55  # the opacity of the strongest colour, so that text stays readable on it
FADED = 0.12
LOG_OF_STRONGEST = log(8)


@dataclass(frozen=True)
class Cell:
    """One ratio and its interval."""

    estimate: float
    low: float
    high: float

    @property
    def turned(self) -> Cell:
        return Cell(1 / self.estimate, 1 / self.high, 1 / self.low)

    @property
    def colour(self) -> str:
        """Green costs less, orange costs more, grey is not distinguishable."""
        if self.low <= 1 <= self.high:
            return MUTED
        return GREEN if self.estimate < 1 else ORANGE

    @property
    def opacity(self) -> float:
        return FADED + (STRONGEST - FADED) * min(1.0, abs(log(self.estimate)) / LOG_OF_STRONGEST)


def draw(engines: Sequence[str], cells: Mapping[tuple[str, str], Cell], sheet: Sheet) -> None:
    count = len(engines)
    sheet.figure.set_size_inches(sheet.width_px / POINTS_PER_INCH, (count * ROW_PX + HEAD_PX) / POINTS_PER_INCH)
    axes = sheet.figure.subplots()
    axes.set_xlim(0, count)
    axes.set_ylim(count, 0)
    for down, row in enumerate(engines):
        for across, column in enumerate(engines):
            cell = cells.get((row, column))
            face, opacity = (cell.colour, cell.opacity) if cell else ("none", 1.0)
            axes.add_patch(Rectangle((across, down), 1, 1, facecolor=face, alpha=opacity, edgecolor="none"))
            axes.add_patch(Rectangle((across, down), 1, 1, facecolor="none", edgecolor=GRID, linewidth=0.8))
            text = _text(cell, sheet.narrow) if cell else "" if row == column else "-"
            axes.text(across + 0.5, down + 0.5, text, ha="center", va="center", fontsize=9 if sheet.narrow else 11)
    axes.set_xticks([index + 0.5 for index in range(count)], list(engines))
    axes.set_yticks([index + 0.5 for index in range(count)], list(engines))
    axes.xaxis.tick_top()
    axes.tick_params(axis="both", length=0)
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _text(cell: Cell, narrow: bool) -> str:
    span = f"{cell.low:.2f} to {cell.high:.2f}"
    return f"{cell.estimate:.2f}\n{span}" if narrow else f"{cell.estimate:.2f} times\n{span}"
