"""Every cell of a run (campaign x window) as one strip, where a single wrong cell among many thousands is visible.

Right cells are a pale ground. Wrong ones are drawn on top as large marks, each kind with its own shape and colour, and
the first ones with their numbers beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import NDArray

from reports.figures.style import BLUE, GREEN, INK, MUTED, ORANGE, PAPER, PURPLE, RED, Sheet, note

# kind -> marker, colour, in the order of the legend
KINDS: dict[str, tuple[str, str]] = {
    "lost": ("v", RED),
    "unseen": ("v", ORANGE),
    "duplicated": ("^", BLUE),
    "phantom": ("X", PURPLE),
    "wrong value": ("D", PURPLE),
    "late-dropped": ("o", ORANGE),
}
SMALL = frozenset({"late-dropped"})  # allowed if explained: a small mark, no alarm
ROWS_MAX, COLUMNS_MAX = 160, 700
APART_MAX = 200  # more marks side by side could not be distinguished
LABELS_MAX = 6
NAMED_MAX = 300  # tooltips
RIGHT_ALPHA = 0.32
LEGEND_PX = 20.0
ROWS_NAMED = 10
STEPS = [base * 10**power for power in range(8) for base in (1, 2, 5)]


@dataclass(frozen=True)
class Mark:
    """A cell that is not simply right. `text` is its tooltip, if any; `label` is a few characters."""

    campaign: int
    window: int  # row of the grid
    kind: str
    label: str
    text: str


@dataclass(frozen=True)
class Grid:
    """All cells: where an event is expected or seen, and the marked cells."""

    present: NDArray[np.bool_]  # windows x campaigns
    windows_s: Sequence[float]  # start of each row, in seconds since the epoch
    marks: Sequence[Mark]
    probes_from: int | None = None  # campaigns from here on are probes
    columns_are: str = "campaign"


def draw(grid: Grid, sheet: Sheet) -> None:
    rows, columns = grid.present.shape
    row_px = min(18.0, max(3.0, 260.0 / max(rows, 1)))
    (axes,) = sheet.rows(
        [max(60.0, min(rows, ROWS_MAX) * row_px)], above_px=LEGEND_PX * (2 if sheet.narrow else 1) + 8.0
    )
    ground = shrunk(grid.present, ROWS_MAX, COLUMNS_MAX)
    image = np.zeros((*ground.shape, 4))
    image[..., :3] = to_rgb(GREEN)
    image[..., 3] = ground * RIGHT_ALPHA
    axes.imshow(image, extent=(0, columns, rows, 0), aspect="auto", interpolation="none")
    _wrong(axes, grid, row_px, sheet)
    _frame(axes, grid, rows, columns)
    _legend(axes, grid, sheet.narrow)


def shrunk(present: NDArray[np.bool_], rows_max: int, columns_max: int) -> NDArray[np.bool_]:
    """Reduce a grid to at most so many rows and columns. A cell of the result is set if any of its cells was."""
    for axis, most in ((0, rows_max), (1, columns_max)):
        length = present.shape[axis]
        if length > most:
            starts = np.linspace(0, length, most, endpoint=False).astype(int)
            present = np.logical_or.reduceat(present, starts, axis=axis)
    return present


def _wrong(axes: Axes, grid: Grid, row_px: float, sheet: Sheet) -> None:
    alarms = [mark for mark in grid.marks if mark.kind not in SMALL]
    few = len(alarms) <= LABELS_MAX
    size = 12.0 if few else min(11.0, max(7.0, row_px * 0.7))
    shown = sorted(grid.marks, key=lambda mark: mark.kind not in SMALL)  # alarms on top
    for kind, (marker, colour) in KINDS.items():
        rest = thinned([mark for mark in shown if mark.kind == kind and not mark.text], grid.present.shape)
        axes.plot(*_places(rest), marker, color=colour, markersize=_size_px(kind, size), linestyle="none")
    for number, mark in enumerate(mark for mark in shown if mark.text):
        marker, colour = KINDS[mark.kind]
        (line,) = axes.plot(
            *_places([mark]),
            marker,
            color=colour,
            markersize=_size_px(mark.kind, size),
            markeredgecolor=PAPER,
            markeredgewidth=0.3 if mark.kind in SMALL else 0.7,
            clip_on=False,
        )
        line.set_gid(f"cell-{number}")
        sheet.tooltips[f"cell-{number}"] = mark.text
    if few:
        _label(axes, alarms, grid.present.shape[1])


def thinned(marks: Sequence[Mark], shape: tuple[int, ...]) -> list[Mark]:
    """Keep one of the marks that would overlap: the page must open even if a million cells are wrong."""
    parts = [-(-length // APART_MAX) for length in shape]  # rows, and columns, per part
    return [*{(mark.window // parts[0], mark.campaign // parts[1]): mark for mark in marks}.values()]


def _size_px(kind: str, size: float) -> float:
    return 4.0 if kind in SMALL else size


def _places(marks: Sequence[Mark]) -> tuple[list[float], list[float]]:
    return [mark.campaign + 0.5 for mark in marks], [mark.window + 0.5 for mark in marks]


def _label(axes: Axes, marks: Sequence[Mark], columns: int) -> None:
    for mark in marks:
        right = mark.campaign > columns / 2
        axes.plot(
            *_places([mark]), "o", markersize=24, markerfacecolor="none", color=INK, markeredgewidth=1.2, clip_on=False
        )
        at, apart = (mark.campaign + 0.5, mark.window + 0.5), (-16 if right else 16, 0)
        ground = {"facecolor": PAPER, "edgecolor": "none", "alpha": 0.85, "pad": 1.5}
        note(axes, mark.label, at, apart, va="center", fontweight="bold", bbox=ground)


def _frame(axes: Axes, grid: Grid, rows: int, columns: int) -> None:
    axes.grid(visible=False)
    axes.set_xlim(0, columns)
    axes.set_ylim(rows, 0)
    step = next(step for step in STEPS if rows / step <= ROWS_NAMED)
    axes.set_yticks([row + 0.5 for row in range(0, rows, step)])
    axes.set_yticklabels([f"{grid.windows_s[row]:+,.0f} s" for row in range(0, rows, step)])
    axes.tick_params(length=0)
    axes.set_xlabel(grid.columns_are)
    axes.set_ylabel("window")
    if grid.probes_from is not None and 0 < grid.probes_from < columns:
        axes.axvline(grid.probes_from, color=MUTED, linewidth=1.0)
        note(axes, " probes", (grid.probes_from, 0), (2, 3), color=MUTED, fontsize=10, annotation_clip=False)


def _legend(axes: Axes, grid: Grid, narrow: bool) -> None:
    counts = {kind: sum(mark.kind == kind for mark in grid.marks) for kind in KINDS}
    right = int(grid.present.sum()) - sum(1 for m in grid.marks if m.kind not in SMALL and _present(grid, m))
    handles: list[Patch | Line2D] = [Patch(facecolor=GREEN, alpha=RIGHT_ALPHA, label=f"right ({right:,})")]
    for kind, (marker, colour) in KINDS.items():
        if counts[kind]:
            label = f"{kind} ({counts[kind]:,})"
            handles.append(Line2D([], [], marker=marker, color=colour, linestyle="none", markersize=7, label=label))
    axes.figure.legend(handles=handles, loc="outside upper left", ncols=2 if narrow else 6)


def _present(grid: Grid, mark: Mark) -> bool:
    return bool(grid.present[mark.window, mark.campaign])
