"""A batch beside the stream: the equal and differing cells of each window, and the cost of both below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from reports.figures.style import BLUE, GREEN, INK, ORANGE, RED, SHORT, SKY, Sheet, note

PANEL_PX, BARS_PX, BAR_PX, LEGEND_PX = 170.0, 30.0, 22.0, 22.0
SHARE = 0.9  # of the distance between windows
NAMED_PX = 24.0  # width of a number above a window
PALE = {GREEN: 0.45}  # the usual case is pale
COLOURS = {"equal": GREEN, "the stream dropped as late": ORANGE, "differs otherwise": RED}
HALF = "written when it was killed"


@dataclass(frozen=True)
class Window:
    """The cells of one window."""

    begins_s: float
    cells: tuple[int, ...]  # in the order of COLOURS
    more: int  # more events in the batch than in the stream
    half: int | None  # cells that the batch had written when it was killed; None: it was not killed


@dataclass(frozen=True)
class Cost:
    """One kind of cost of both."""

    name: str
    stream: float
    batch: float


def draw(windows: Sequence[Window], costs: Sequence[Cost], sheet: Sheet) -> None:
    heights = [PANEL_PX, *[BARS_PX + 2 * BAR_PX * len(costs)] * bool(costs)]
    upper, *lower = sheet.rows(heights, above_px=LEGEND_PX * (3 if sheet.narrow else 1), one_axis=False)
    _cells(upper, windows, sheet)
    for axes in lower:
        _costs(axes, costs, narrow=sheet.narrow)
    sheet.figure.legend(handles=_legend(windows), loc="outside upper left", ncols=1 if sheet.narrow else 4)


def _cells(axes: Axes, windows: Sequence[Window], sheet: Sheet) -> None:
    begins = [each.begins_s for each in windows]
    width = SHARE * min((later - one for one, later in pairwise(begins)), default=1.0)
    below = [0] * len(windows)
    for number, colour in enumerate(COLOURS.values()):
        cells = [each.cells[number] for each in windows]
        axes.bar(begins, cells, width, bottom=below, align="edge", color=colour, alpha=PALE.get(colour, 1.0))
        below = [low + high for low, high in zip(below, cells, strict=True)]
    for each, top in zip(windows, below, strict=True):
        if each.half is not None:
            axes.hlines(each.half, each.begins_s, each.begins_s + width, color=INK, linewidth=2.4)
        if each.more and sheet.width_px / len(windows) > NAMED_PX:
            axes.text(each.begins_s + width / 2, top, f"{each.more:+,}", ha="center", va="bottom", fontsize=10)
    axes.set_ylim(0, max(below) * 1.12)
    axes.locator_params(axis="y", nbins=4)
    axes.yaxis.set_major_formatter(SHORT)
    axes.set_ylabel("cells")
    above = "" if sheet.narrow else "; above it, what the batch counts more"
    axes.set_xlabel(f"start of the window, s into the load{above}")


def _costs(axes: Axes, costs: Sequence[Cost], *, narrow: bool) -> None:
    bars = [(f"{name}, {each.name}", took, colour) for each in costs for name, took, colour in _pair(each)]
    for y, (_, took, colour) in enumerate(bars):
        axes.barh(y, took, 0.7, color=colour)
        note(axes, f"{took:,.1f}", (took, y), (5, 0), va="center")
    axes.set_yticks(range(len(bars)), [name for name, _, _ in bars])
    axes.invert_yaxis()
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", visible=False)
    axes.grid(axis="x")
    axes.set_xlim(0, max(took for _, took, _ in bars) * (1.3 if narrow else 1.12))
    axes.set_xlabel("seconds")


def _pair(cost: Cost) -> tuple[tuple[str, float, str], ...]:
    return ("stream", cost.stream, BLUE), ("batch", cost.batch, SKY)


def _legend(windows: Sequence[Window]) -> list[Patch | Line2D]:
    found: list[Patch | Line2D] = []
    for number, (name, colour) in enumerate(COLOURS.items()):
        if cells := sum(each.cells[number] for each in windows):
            found.append(Patch(facecolor=colour, alpha=PALE.get(colour, 1.0), label=f"{name} ({cells:,})"))
    if any(each.half is not None for each in windows):
        found.append(Line2D([], [], color=INK, linewidth=2.4, label=HALF))
    return found
