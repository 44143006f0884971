"""The effect of a change on each metric: its interval, the base's own, and the smallest detectable slowdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter

from reports.figures.style import FOOT_PX, INK, MUTED, POINTS_PER_INCH, Sheet, note

ROW_PX = 46
HEAD_PX = 40  # the legend
WIDEST = 1.0  # intervals are cut off at twice the base's figure, else the others would shrink to a point
APART = 0.22  # of a row, between the head and the base by itself
DASHED = (0, (2, 1.5))
PERCENT = FuncFormatter(lambda share, _: f"{share:+.0%}" if share else "0%")


@dataclass(frozen=True)
class Span:
    """The excess over the base as a share of it, with its interval."""

    estimate: float
    low: float
    high: float


@dataclass(frozen=True)
class Row:
    """One metric."""

    name: str
    answer: str
    colour: str  # of the answer
    head: Span
    control: Span  # the base by itself
    detectable: float


def draw(rows: Sequence[Row], threshold: float, sheet: Sheet) -> None:
    height_px = len(rows) * ROW_PX + HEAD_PX + FOOT_PX
    sheet.figure.set_size_inches(sheet.width_px / POINTS_PER_INCH, height_px / POINTS_PER_INCH)
    axes = sheet.figure.subplots()
    left, right = _limits(rows, threshold)
    axes.set_xlim(left, right)
    axes.set_ylim(len(rows) - 0.5, -0.5)  # the first one above
    band = axes.axvspan(-threshold, threshold, color=MUTED, alpha=0.18, linewidth=0)
    axes.axvline(0, color=INK, linewidth=0.8)
    for y, row in enumerate(rows):
        _draw(axes, y, row)
    axes.set_yticks(range(len(rows)), [row.name if sheet.narrow else f"{row.name}\n{row.answer}" for row in rows])
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False)
    axes.xaxis.set_major_formatter(PERCENT)
    axes.set_xlabel("more than the base")
    band.set_label(f"within {threshold * 100:g}%")
    _legend(axes, band, sheet.narrow)


def _limits(rows: Sequence[Row], threshold: float) -> tuple[float, float]:
    spans = [span for row in rows for span in (row.head, row.control)]
    low = min([-1.5 * threshold, *(span.low for span in spans)])
    high = max([2 * threshold, *(span.high for span in spans), *(row.detectable for row in rows)])
    return max(-WIDEST, low * 1.08), min(WIDEST, high * 1.08)


def _draw(axes: Axes, y: int, row: Row) -> None:
    _span(axes, y - APART, row.head, row.colour, width=3.0, mark="o", size=6)
    _span(axes, y + APART, row.control, MUTED, width=1.2, mark="D", size=4.5)
    end = axes.get_xlim()[1]
    if row.detectable < end:
        axes.plot([row.detectable] * 2, [y - 0.42, y], color=INK, linewidth=1.2, linestyle=DASHED)
    else:
        words = f"detectable {row.detectable:.0%}"
        note(axes, words, (end, y), (-12, 0), va="center")


def _span(axes: Axes, y: float, span: Span, colour: str, *, width: float, mark: str, size: float) -> None:
    """An end outside the drawing becomes an arrow."""
    left, right = axes.get_xlim()
    low, high = max(left, span.low), min(right, span.high)
    axes.plot([low, high], [y, y], color=colour, linewidth=width, solid_capstyle="butt")
    for end, seen, arrow in ((low, span.low, "<"), (high, span.high, ">")):
        if end != seen:
            axes.plot(end, y, arrow, color=colour, markersize=7, clip_on=False)
    if left <= span.estimate <= right:
        axes.plot(span.estimate, y, mark, color=colour, markersize=size)


def _legend(axes: Axes, band: Patch, narrow: bool) -> None:
    """Head and detectable are neutral lines in the legend, because a head has the colour of its answer."""
    marks = [
        Line2D([], [], color=INK, linewidth=3.0, marker="o", label="head"),
        Line2D([], [], color=MUTED, linewidth=1.2, marker="D", markersize=4.5, label="base by itself"),
        Line2D([], [], color=INK, linewidth=1.2, linestyle=DASHED, label="detectable"),
        band,
    ]
    ncols = 2 if narrow else 4
    axes.legend(handles=marks, loc="lower left", bbox_to_anchor=(0.0, 1.01), ncols=ncols, columnspacing=1.2)
