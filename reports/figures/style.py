"""Shared sizes and colours of all drawings, and the rendering of a figure to the same bytes each time.

A drawing is made twice, wide for a desktop and narrow for a phone, because scaled-down text is unreadable. In the page
its colours are CSS variables, so that the page's theme decides; the PNG is wide and on white.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from harness.util.texts import three_digits

WIDE_PX, NARROW_PX = 760, 336
POINTS_PER_INCH = 72  # one point is one pixel of the page
PNG_DPI = 144
FOOT_PX = 38.0  # ticks and name of the x axis

# Okabe and Ito's colours, without the yellow, which is invisible on white.
BLUE, ORANGE, GREEN, RED, PURPLE, SKY = "#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9"
INK, MUTED, GRID, PAPER = "#1c1e21", "#6b7076", "#d5d8db", "#fffffe"
VARIABLES = {
    BLUE: "--blue",
    ORANGE: "--orange",
    GREEN: "--green",
    RED: "--red",
    PURPLE: "--purple",
    SKY: "--sky",
    INK: "--ink",
    MUTED: "--muted",
    GRID: "--grid",
    PAPER: "--paper",
}
COLOURS = {variable: colour for colour, variable in VARIABLES.items()}
SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same everywhere
    "font.size": 11,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.titlepad": 6,
    "axes.labelsize": 11,
    "axes.labelcolor": INK,
    "axes.edgecolor": MUTED,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 10,
    "ytick.labelsize": 10,
    "legend.frameon": False,
    "legend.fontsize": 10,
    "legend.handlelength": 1.4,
    "legend.borderaxespad": 0.0,
    "lines.linewidth": 1.6,
    "lines.solid_joinstyle": "round",
    "axes.facecolor": "none",
    "figure.facecolor": "none",
}


@dataclass
class Sheet:
    """An empty figure of a given width, and the tooltips of its marks."""

    figure: Figure
    width_px: int
    tooltips: dict[str, str] = field(default_factory=dict)  # gid of an artist -> text

    @property
    def narrow(self) -> bool:
        return self.width_px < WIDE_PX

    def rows(self, heights_px: Sequence[float], *, above_px: float = 0.0, one_axis: bool = True) -> list[Axes]:
        """Return axes below each other, with a shared x axis or one each. The figure gets the height that they need,
        and room of `above_px` for a legend.
        """
        feet_px = FOOT_PX * (1 if one_axis else len(heights_px))
        self.figure.set_size_inches(
            self.width_px / POINTS_PER_INCH, (sum(heights_px) + above_px + feet_px) / POINTS_PER_INCH
        )
        made = self.figure.subplots(len(heights_px), 1, sharex=one_axis, squeeze=False, height_ratios=heights_px)
        return [row[0] for row in made]


@dataclass(frozen=True)
class Picture:
    """One drawing for a page: two SVGs, and a PNG beside the page."""

    name: str
    alt: str
    wide: str
    narrow: str
    png: bytes

    @property
    def svg(self) -> bytes:
        """The wide SVG as a file, with colours instead of the page's variables."""
        coloured = re.sub(r"var\((--[a-z]+)\)", lambda found: COLOURS[found[1]], self.wide)
        return coloured.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1).encode()


def picture(name: str, alt: str, draw: Callable[[Sheet], None]) -> Picture:
    """Draw the wide and the narrow version. Equal numbers give equal bytes: there are no dates, and ids depend on
    nothing but the drawing's name.
    """
    with mpl.rc_context({**SETTINGS, "svg.hashsalt": name}):
        wide, narrow = _sheet(draw, WIDE_PX), _sheet(draw, NARROW_PX)
        return Picture(name, alt, _svg(wide, f"{name}-w"), _svg(narrow, f"{name}-n"), _png(wide))


def _sheet(draw: Callable[[Sheet], None], width_px: int) -> Sheet:
    layout = ConstrainedLayoutEngine(w_pad=2 / POINTS_PER_INCH, h_pad=3 / POINTS_PER_INCH)
    figure = Figure(dpi=POINTS_PER_INCH, layout=layout)
    FigureCanvasAgg(figure)
    sheet = Sheet(figure, width_px)
    draw(sheet)
    _settle(figure)
    return sheet


def _settle(figure: Figure) -> None:
    """The layout is fixed in round numbers, because the last digits of its solver differ from time to time."""
    layout = figure.get_layout_engine()
    assert layout is not None
    layout.execute(figure)
    figure.set_layout_engine("none")
    for axes in figure.axes:
        left, bottom, width, height = (round(side, 4) for side in axes.get_position().bounds)
        axes.set_position((left, bottom, width, height))


def _png(sheet: Sheet) -> bytes:
    file = io.BytesIO()
    sheet.figure.set_dpi(PNG_DPI)
    sheet.figure.set_facecolor("white")
    canvas: Any = FigureCanvasAgg(sheet.figure)  # `savefig` would draw everything once more
    canvas.print_png(file, metadata={"Software": None})
    return file.getvalue()


def _svg(sheet: Sheet, prefix: str) -> str:
    file = io.StringIO()
    canvas: Any = FigureCanvasSVG(sheet.figure)
    canvas.print_svg(file, metadata={"Date": None, "Creator": None})
    return _for_page(file.getvalue(), prefix, sheet.tooltips)


def _for_page(text: str, prefix: str, tooltips: Mapping[str, str]) -> str:
    """Turns matplotlib's file into an element of a page: without prolog and global style, with unique ids, and colours
    as variables.
    """
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*|<style .*?</style>\s*|<!--.*?-->\s*", "", text, flags=re.DOTALL)
    text = re.sub(r'\bid="([^"]+)"', rf'id="{prefix}-\1"', text)
    text = re.sub(r'href="#([^"]+)"', rf'href="#{prefix}-\1"', text)
    text = re.sub(r"url\(#([^)]+)\)", rf"url(#{prefix}-\1)", text)
    text = re.sub(r"#[0-9a-f]{6}\b", lambda m: f"var({VARIABLES[m[0]]})" if m[0] in VARIABLES else m[0], text)
    for gid, tooltip in tooltips.items():
        head = f'<g id="{prefix}-{gid}">'
        text = text.replace(head, f"{head}<title>{escape(tooltip)}</title>", 1)
    head = re.sub(r' (?:width|height|version|xmlns(?::xlink)?)="[^"]*"', "", text[: text.index(">")])
    return f'{head} xmlns:xlink="http://www.w3.org/1999/xlink" aria-hidden="true"{text[text.index(">") :]}'.strip()


def short(value: float) -> str:
    """Write 123 as 123, 12,000 as 12k, 1,500,000 as 1.5M: as few characters as an axis needs."""
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= unit:
            return f"{three_digits(value / unit)}{name}"
    return three_digits(value)


def log_ticks(axes: Axes, *, few: bool = False) -> None:
    """Use a log axis of times with round ticks."""
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0,) if few else (1.0, 2.0, 5.0), numticks=4 if few else 7))
    axes.yaxis.set_minor_locator(NullLocator())


def line_of_objective(axes: Axes, name: str, ms: float) -> None:
    """Draw the line above which a latency is too long."""
    axes.axhline(ms, color=MUTED, linestyle=(0, (4, 2)), linewidth=1.0)
    note(axes, f"{name}: {duration(ms)}", (0, ms), (3, 3), xycoords=("axes fraction", "data"), color=MUTED)


def note(axes: Axes, text: str, at: tuple[float, float], apart: tuple[float, float], **style: Any) -> None:
    """Write a text so many points apart from a place: left of it, it ends there."""
    side = "right" if apart[0] < 0 else "left"
    axes.annotate(text, at, apart, textcoords="offset points", ha=side, **style)


def mark(colour: str, shape: str, label: str) -> Line2D:
    """Return a mark for a legend."""
    return Line2D([], [], color=colour, marker=shape, linestyle="", markersize=6, label=label)


def duration(ms: float) -> str:
    """Write a time in ms or s, rounded for reading."""
    if ms == 0:
        return "0"
    if abs(ms) >= 10_000:
        return f"{ms / 1000:,.0f} s"
    if abs(ms) >= 1000:
        return f"{three_digits(ms / 1000)} s"
    return f"{three_digits(ms)} ms"


SHORT = FuncFormatter(lambda value, _: short(value))
DURATION = FuncFormatter(lambda ms, _: duration(ms))


def along(axes: Axes, labels: Sequence[str], sheet: Sheet) -> None:
    """Lay things in a row along the x axis, at 0, 1 and so on. A tick that is at none of them has no label."""

    def label(index: float, _: object) -> str:
        return labels[int(index)] if index in range(len(labels)) else ""

    axes.set_xlim(-0.6, len(labels) - 0.4)
    axes.xaxis.set_major_locator(MaxNLocator(4 if sheet.narrow else 8, integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(label))
