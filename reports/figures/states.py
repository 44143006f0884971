"""The cells of the state after some batches: how many the log requires, how many the state held, and how many of those
are in the results. Above stands the count, or the errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes

from reports.figures.style import BLUE, GREEN, INK, MUTED, RED, SHORT, Sheet, note

PANEL_PX, LEGEND_PX, NAME_PX = 190.0, 22.0, 17.0
BAR = 0.26  # of the distance to the next state
LINE = 0.09  # of the height
NARROW_SHOWN = 6  # most batches that are named on a phone


@dataclass(frozen=True)
class Held:
    """One state, in cells."""

    batch: int
    at_s: float
    expected: int
    held: int
    shown: int  # of the held cells, so many are in the results
    wrong: Mapping[str, int]  # cells by the word for their error


@dataclass(frozen=True)
class Blow:
    """A fault, drawn before the state of this number."""

    before: int
    label: str


def draw(states: Sequence[Held], blows: Sequence[Blow], sheet: Sheet) -> None:
    (axes,) = sheet.rows([PANEL_PX + NAME_PX * len(blows)], above_px=LEGEND_PX * (2 if sheet.narrow else 1) + NAME_PX)
    bars = (
        ("the log says", INK, [each.expected for each in states]),
        ("the state held", BLUE, [each.held for each in states]),
        ("of these in the results", GREEN, [each.shown for each in states]),
    )
    for number, (name, colour, cells) in enumerate(bars):
        middles = [index + (number - 1) * BAR for index in range(len(states))]
        axes.bar(middles, cells, BAR * 0.9, color=colour, alpha=0.75, label=name)
    words = [_words(each, sheet.narrow) for each in states]
    lines = max(text.count("\n") + 1 for text in words) + len(blows)
    axes.set_ylim(0, max(max(cells) for _, _, cells in bars) * (1.02 + LINE * lines) or 1)
    for index, (each, text) in enumerate(zip(states, words, strict=True)):
        weight = "bold" if each.wrong else "normal"
        axes.text(index, max(each.expected, each.held), text, ha="center", va="bottom", fontsize=10, fontweight=weight)
    _blows(axes, blows, len(states))
    _frame(axes, states, sheet.narrow)
    sheet.figure.legend(loc="outside upper left", ncols=2 if sheet.narrow else 3)


def _words(each: Held, narrow: bool) -> str:
    """A phone has room for the number of wrong cells only."""
    if narrow:
        return f"{sum(each.wrong.values()):,}" if each.wrong else ""
    return "\n".join(f"{count:,}\n{word}" for word, count in each.wrong.items()) or f"{each.held:,}"


def _blows(axes: Axes, blows: Sequence[Blow], states: int) -> None:
    for number, blow in enumerate(blows):
        x, left = blow.before - 0.5, blow.before <= states / 2
        axes.axvline(x, color=RED, linewidth=1.2)
        apart = (4 if left else -4, -NAME_PX * number)
        note(axes, blow.label, (x, 1.0), apart, xycoords=("data", "axes fraction"), va="top", fontsize=10)


def _frame(axes: Axes, states: Sequence[Held], narrow: bool) -> None:
    step = -(-len(states) // NARROW_SHOWN) if narrow else 1
    axes.set_xticks(range(0, len(states), step), [f"{each.batch:,}\n{each.at_s:+.0f} s" for each in states[::step]])
    axes.tick_params(axis="x", length=0)
    axes.set_xlim(-0.6, len(states) - 0.4)
    axes.locator_params(axis="y", nbins=4)
    axes.yaxis.set_major_formatter(SHORT)
    axes.spines["bottom"].set_color(MUTED)
    axes.set_ylabel("cells")
    axes.set_xlabel("after batch, and s into the load")
