"""Audited results: a row of points for each engine, and the share in single windows over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import shorten

from matplotlib.ticker import Formatter, MaxNLocator, NullLocator

from harness.model import Outcome
from reports.figures.style import BLUE, GREEN, GRID, INK, MUTED, PURPLE, RED, Sheet, mark

ROW_PX, LEGEND_PX, PANEL_PX = 24.0, 24.0, 84.0
WIDE_LETTERS, NARROW_LETTERS = 90, 38
# Outcome -> its colour and its mark, because some readers can't tell the colours apart.
MARKS = {Outcome.PASS: (GREEN, "o"), Outcome.FAIL: (RED, "D"), Outcome.UNKNOWN: (MUTED, "s")}
CLAIM = "published"


@dataclass(frozen=True)
class Row:
    """One engine: a value and an outcome for each set, and published values."""

    engine: str
    points: tuple[tuple[float, Outcome], ...]
    claims: tuple[float, ...] = ()


@dataclass(frozen=True)
class Curve:
    """The count of each window of one set as a share of the offered events."""

    title: str
    seconds: tuple[int, ...]
    shares: tuple[float, ...]


def draw_rows(rows: Sequence[Row], label: str, form: Formatter, sheet: Sheet, *, log: bool = False) -> None:
    (axes,) = sheet.rows([ROW_PX * len(rows) + ROW_PX], above_px=LEGEND_PX)
    for y, row in enumerate(rows):
        axes.axhline(y, color=GRID, linewidth=0.8)
        for outcome, (colour, shape) in MARKS.items():
            own = [value for value, its in row.points if its is outcome]
            axes.plot(own, [y] * len(own), shape, color=colour, markersize=5, alpha=0.7)
        axes.plot(row.claims, [y] * len(row.claims), "x", color=PURPLE, markersize=7)
    axes.set_yticks(range(len(rows)), [_plain(row.engine, 18) for row in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False)
    if log:
        axes.set_xscale("log")
        axes.xaxis.set_minor_locator(NullLocator())
    else:
        axes.axvline(1.0, color=INK, linewidth=0.8)
        axes.xaxis.set_major_locator(MaxNLocator(5 if sheet.narrow else 9, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(form)
    axes.set_xlabel(label)
    marks = [mark(colour, shape, outcome.value) for outcome, (colour, shape) in MARKS.items()]
    marks += [mark(PURPLE, "x", CLAIM)] if any(row.claims for row in rows) else []
    sheet.figure.legend(handles=marks, loc="outside upper left", ncols=len(marks))


def draw_curves(curves: Sequence[Curve], sheet: Sheet) -> None:
    for curve, axes in zip(curves, sheet.rows([PANEL_PX] * len(curves)), strict=True):
        axes.axhline(1.0, color=INK, linewidth=0.8)
        axes.plot(curve.seconds, curve.shares, color=BLUE, linewidth=1.2)
        axes.set_ylim(0, max(1.2, 1.1 * max(curve.shares)))
        axes.yaxis.set_major_locator(MaxNLocator(3, steps=[1, 2, 5, 10]))
        letters = NARROW_LETTERS if sheet.narrow else WIDE_LETTERS
        axes.set_title(_plain(curve.title, letters), fontweight="bold", parse_math=False)
        last = axes
    last.set_xlabel("seconds since the oldest window")


def _plain(text: str, letters: int) -> str:
    """Our font lacks some characters that a folder's name may have."""
    return shorten(text, letters, placeholder=" ...").encode("ascii", "backslashreplace").decode()
