"""Engines side by side: a panel for each question, with a bar for each engine and its interval over the rounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.ticker import NullFormatter

from reports.figures.style import BLUE, GRID, INK, MUTED, Sheet, note

BAR_PX = 20
HEAD_PX = 30
LOG_RATIO = 20.0


@dataclass(frozen=True)
class Bar:
    """One engine's value. Without a value the note gives the reason."""

    engine: str
    value: float | None
    low: float | None
    high: float | None
    baseline: bool  # the single-process reference, the baseline of the others


@dataclass(frozen=True)
class Panel:
    """One question."""

    title: str
    bars: tuple[Bar, ...]
    text: Callable[[float], str]


def draw(panels: Sequence[Panel], sheet: Sheet) -> None:
    heights = [float(len(panel.bars) * BAR_PX + HEAD_PX) for panel in panels]
    sheet.figure.set_size_inches(sheet.width_px / 72, (sum(heights) + 10) / 72)
    rows = sheet.figure.subplots(len(panels), 1, squeeze=False, height_ratios=heights)
    for panel, row in zip(panels, rows, strict=True):
        _draw(panel, row[0])


def _draw(panel: Panel, axes: Axes) -> None:
    known = [bar.value for bar in panel.bars if bar.value]
    logarithmic = bool(known) and max(known) > LOG_RATIO * min(known)
    lowest = min(known, default=1.0) / 1.5
    for y, bar in enumerate(panel.bars):
        _bar(axes, y, bar, panel.text, dots_from=lowest if logarithmic else None)
    axes.set_yticks(range(len(panel.bars)), [bar.engine for bar in panel.bars])
    axes.set_ylim(len(panel.bars) - 0.4, -0.6)  # the first one above
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False)
    axes.set_title(panel.title + (" (log)" if logarithmic else ""), fontweight="bold")
    axes.set_xticks([])
    axes.spines["bottom"].set_visible(False)
    top = max([*known, *(bar.high for bar in panel.bars if bar.high)], default=1.0)
    if logarithmic:
        axes.set_xscale("log")
        axes.set_xlim(lowest, top * (top / lowest) ** 0.3)
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_xticks([], minor=True)
        axes.set_xticks([])
    else:
        axes.set_xlim(0, top * 1.35)


def _bar(axes: Axes, y: int, bar: Bar, text: Callable[[float], str], *, dots_from: float | None) -> None:
    """A log axis gets a dot, because the length of a bar has no meaning there."""
    if bar.value is None:
        note(axes, "not known", (0, y), (5, 0), xycoords=("axes fraction", "data"), va="center")
        return
    colour = MUTED if bar.baseline else BLUE
    if dots_from is not None:
        axes.plot([dots_from, bar.value], [y, y], color=GRID, linewidth=0.8)
        axes.plot(bar.value, y, "o", color=colour, markersize=8)
    else:
        axes.barh(y, bar.value, color=colour, height=0.66)
    end = bar.value
    if bar.low is not None and bar.high is not None:
        axes.plot([bar.low, bar.high], [y, y], color=INK, linewidth=1.4, marker="|", markersize=7)
        end = max(end, bar.high)
    note(axes, text(bar.value), (end, y), (8, 0), va="center")
