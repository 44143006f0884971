"""A metric over a history of gates: a panel for each series with the ratio of head to base."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import shorten

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from reports.figures.style import GREEN, GRID, INK, MUTED, RED, Sheet, along, mark

PANEL_PX, LEGEND_PX = 120.0, 24.0
WIDE_LETTERS, NARROW_LETTERS = 90, 38
LEAST = 0.02  # least margin around the values, as a share
# Answer -> its colour and its mark, because some readers can't tell the colours apart.
MARKS = {"OK": (GREEN, "o"), "REGRESSED": (RED, "D"), "INCONCLUSIVE": (MUTED, "s")}
WITHOUT = "no figure"
SMALL = 60  # more points than this get smaller marks
TIMES = FuncFormatter(lambda ratio, _: f"{ratio:.4g}")
PERCENT = FuncFormatter(lambda ratio, _: f"{(ratio - 1) * 100:+.4g}%".replace("+0%", "0%"))


@dataclass(frozen=True)
class Point:
    """A gate. Without a ratio nothing was compared there."""

    index: int  # of the gate among all drawn gates
    answer: str
    ratio: float | None = None
    low: float = 1.0
    high: float = 1.0


@dataclass(frozen=True)
class Panel:
    """One series."""

    title: str
    points: tuple[Point, ...]
    threshold: float | None  # None: head and base are different engines, and nothing is too slow


def draw(panels: Sequence[Panel], days: Sequence[str], sheet: Sheet) -> None:
    """`days`: the date of each gate in all series."""
    rows = sheet.rows([PANEL_PX] * len(panels), above_px=LEGEND_PX)
    for panel, axes in zip(panels, rows, strict=True):
        _draw(panel, axes)
        title = shorten(panel.title, NARROW_LETTERS if sheet.narrow else WIDE_LETTERS, placeholder=" ...")
        # Our font lacks some characters that a branch's name may have.
        axes.set_title(title.encode("ascii", "backslashreplace").decode(), fontweight="bold", parse_math=False)
    along(rows[-1], days, sheet)
    rows[-1].set_xlabel("gates, by date")
    marks = [mark(colour, shape, answer) for answer, (colour, shape) in MARKS.items()]
    marks.append(mark(INK, "x", WITHOUT))
    sheet.figure.legend(handles=marks, loc="outside upper left", ncols=2 if sheet.narrow else 4)


def _draw(panel: Panel, axes: Axes) -> None:
    seen = [each for each in panel.points if each.ratio is not None]
    ratios = [each.ratio for each in seen if each.ratio is not None]
    size = 5.0 if len(panel.points) <= SMALL else 3.0
    axes.plot([each.index for each in seen], ratios, color=GRID, linewidth=1.0)
    for answer, (colour, shape) in MARKS.items():
        own = [(each, ratio) for each, ratio in zip(seen, ratios, strict=True) if each.answer == answer]
        indices = [each.index for each, _ in own]
        axes.vlines(indices, [each.low for each, _ in own], [each.high for each, _ in own], color=colour, linewidth=1.2)
        axes.plot(indices, [ratio for _, ratio in own], shape, color=colour, markersize=size)
        without = [each.index for each in panel.points if each.ratio is None and each.answer == answer]
        axes.plot(without, [0.06] * len(without), "x", color=colour, transform=axes.get_xaxis_transform())
    lines = () if panel.threshold is None else (1.0, 1.0 + panel.threshold)
    for line, colour, style in zip(lines, (INK, MUTED), ("solid", (0, (4, 2))), strict=False):
        axes.axhline(line, color=colour, linewidth=0.8, linestyle=style)
    axes.set_ylim(*_limits([*ratios, *lines]))
    axes.yaxis.set_major_formatter(PERCENT if lines else TIMES)
    axes.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))


def _limits(values: Sequence[float]) -> tuple[float, float]:
    """Wide intervals are cut off, because they would leave no room for the values."""
    low, high = min(values), max(values)
    room = max(LEAST * low, 0.25 * (high - low))
    return low - room, high + room
