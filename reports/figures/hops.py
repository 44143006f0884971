"""Draws the cost of a hop between two operators: bytes per second by the size of a record, relative to a socket."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from harness.util.texts import three_digits
from reports.figures.style import MUTED, Sheet

PANEL_PX, LEGEND_PX, BAND = 230.0, 120.0, 0.15


@dataclass(frozen=True)
class Point:
    """The ratio with records of one size: the median, the smallest and the largest."""

    size: int
    low: float
    mid: float
    high: float


@dataclass(frozen=True)
class Line:
    """One way; a published one has no spread and is dashed."""

    label: str
    colour: str
    points: tuple[Point, ...]
    published: bool = False


def draw(panels: Sequence[tuple[str, Sequence[Line]]], sheet: Sheet) -> None:
    drawn = sheet.rows([PANEL_PX] * len(panels), above_px=LEGEND_PX * len(panels) if sheet.narrow else 0.0)
    for axes, (title, lines) in zip(drawn, panels, strict=True):
        axes.set_title(title, fontweight="bold")
        axes.axhline(1, color=MUTED, linewidth=1.0)
        for line in lines:
            _one(axes, line)
        _scales(axes, lines)
        axes.set_ylabel("times a loopback socket")
        if sheet.narrow:
            axes.legend(loc="upper left", bbox_to_anchor=(0.0, -0.18))
        else:
            axes.legend(loc="center left", bbox_to_anchor=(1.02, 0.5))
    drawn[-1].set_xlabel("bytes of a record")


def _one(axes: Axes, line: Line) -> None:
    sizes = [point.size for point in line.points]
    if not line.published:
        lows, highs = [point.low for point in line.points], [point.high for point in line.points]
        axes.fill_between(sizes, lows, highs, color=line.colour, alpha=BAND, linewidth=0)
    shape = {"linestyle": (0, (4, 2))} if line.published else {"marker": "o", "markersize": 4}
    axes.plot(sizes, [point.mid for point in line.points], color=line.colour, label=line.label, **shape)


def _scales(axes: Axes, lines: Sequence[Line]) -> None:
    sizes = sorted({point.size for line in lines for point in line.points})
    axes.set_xscale("log", base=2)
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(numticks=8))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{three_digits(value)}x"))
