"""Small multiples over one time axis, with bands for faults and marks for repeated batches."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter
from numpy.typing import NDArray

from reports.figures.style import DURATION, INK, MUTED, PAPER, RED, SHORT, Sheet, log_ticks, note

PANEL_PX = 104
LEGEND_PX = 14  # a narrow panel has its legend on lines of its own
LEGEND_COLUMNS = 3
NAME_PX = 17
NAME_SIGNS, NARROW_NAME_SIGNS = 60, 26  # of a line: longer names would leave the panels no room
# Above this ratio between the largest and the smallest value a linear axis shows only the largest.
LOG_RATIO = 100.0


@dataclass(frozen=True)
class Line:
    """One measured quantity over time. NaN: unknown."""

    label: str
    values: NDArray[np.float64]
    colour: str
    dashed: bool = False


@dataclass(frozen=True)
class Panel:
    """Lines that share a unit. `unit` decides how the axis is written: "ms" as times, all else as numbers."""

    title: str
    unit: str
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Band:
    """A span of time, such as a fault until it was undone. A moment has equal times."""

    from_s: float
    to_s: float
    label: str
    fault: bool = False
    landed_s: float | None = None  # of a fault: when it took effect
    colour: str = RED  # of a fault


def draw(seconds: NDArray[np.float64], panels: Sequence[Panel], bands: Sequence[Band], sheet: Sheet) -> None:
    """Draw the panels, and above them a strip with the names of the bands."""
    bands = sorted(bands, key=lambda band: band.from_s)
    names = [textwrap.wrap(band.label, NARROW_NAME_SIGNS if sheet.narrow else NAME_SIGNS) for band in bands]
    heights = [NAME_PX * sum(map(len, names)) + 6.0] * bool(bands)
    heights += [float(PANEL_PX + LEGEND_PX * _legend_lines(panel, sheet.narrow)) for panel in panels]
    axes = sheet.rows(heights)
    axes[-1].set_xlim(float(seconds.min()) - 0.5, float(seconds.max()) + 0.5)
    for each, panel in zip(axes[-len(panels) :], panels, strict=True):
        _panel(each, seconds, panel, sheet.narrow)
    for each in axes:
        _mark(each, bands)
    if bands:
        _name(axes[0], bands, names)
    axes[-1].locator_params(axis="x", integer=True)
    axes[-1].xaxis.set_major_formatter(FuncFormatter(lambda second, _: f"{second:,.0f}"))
    axes[-1].set_xlabel("seconds since the first event was due")


def _panel(axes: Axes, seconds: NDArray[np.float64], panel: Panel, narrow: bool) -> None:
    for line in panel.lines:
        style = (0, (4, 2)) if line.dashed else "-"
        axes.plot(seconds, line.values, color=line.colour, label=line.label, linestyle=style)
    _scale(axes, panel)
    axes.set_title(panel.title + "\n" * _legend_lines(panel, narrow), pad=4, fontweight="bold")
    if len(panel.lines) > 1:
        axes.legend(
            loc="lower left" if narrow else "lower right",
            bbox_to_anchor=(0.0, 1.0) if narrow else (1.0, 1.02),
            ncols=LEGEND_COLUMNS if narrow else len(panel.lines),
            columnspacing=1.0,
            handletextpad=0.4,
        )


def _legend_lines(panel: Panel, narrow: bool) -> int:
    """A wide sheet has the legend beside the title, thus no lines for it."""
    return -(-len(panel.lines) // LEGEND_COLUMNS) if narrow and len(panel.lines) > 1 else 0


def _scale(axes: Axes, panel: Panel) -> None:
    values = np.concatenate([line.values[np.isfinite(line.values)] for line in panel.lines])
    positive = values[values > 0]
    if panel.unit == "ms" and len(positive) and positive.max() > LOG_RATIO * positive.min():
        log_ticks(axes, few=True)
    else:
        axes.set_ylim(bottom=min(0.0, float(values.min())) if len(values) else 0.0)
        axes.locator_params(axis="y", nbins=4)
    axes.yaxis.set_major_formatter(DURATION if panel.unit == "ms" else SHORT)


def _mark(axes: Axes, bands: Sequence[Band]) -> None:
    """A fault is a band: a line where it struck, a fine line where it took effect, a dashed line where it was
    undone.
    """
    for band in bands:
        colour = band.colour if band.fault else MUTED
        if band.to_s > band.from_s:
            axes.axvspan(band.from_s, band.to_s, color=colour, alpha=0.16, linewidth=0)
            axes.axvline(band.to_s, color=colour, linewidth=1.0, linestyle=(0, (4, 2)))
        if band.landed_s is not None:
            axes.axvline(band.landed_s, color=colour, linewidth=0.5)
        axes.axvline(band.from_s, color=colour, linewidth=1.0, linestyle="-" if band.fault else (0, (1, 2)))


def _name(axes: Axes, bands: Sequence[Band], names: Sequence[Sequence[str]]) -> None:
    axes.set_ylim(sum(map(len, names)), 0)
    axes.set_yticks([])
    axes.tick_params(bottom=False)
    axes.spines[:].set_visible(False)
    low, high = axes.get_xlim()
    above = 0
    for band, lines in zip(bands, names, strict=True):
        middle = above + len(lines) / 2
        above += len(lines)
        if band.landed_s is not None:
            axes.plot(band.landed_s, middle, marker="v", markersize=4, color=band.colour)
        left = band.from_s < low + 0.5 * (high - low)
        at, apart = (band.from_s, middle), (5 if left else -5, 0)
        ground = {"facecolor": PAPER, "edgecolor": "none", "alpha": 0.8, "pad": 1.0}
        note(axes, "\n".join(lines), at, apart, va="center", color=INK, fontsize=10, bbox=ground)
