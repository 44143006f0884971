"""Seconds that the loss of each part of an engine cost: a panel for each figure, a bar for each fault."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reports.figures.style import BLUE, SHORT, Sheet, note

BAR_PX, TITLE_PX = 24, 44
LONGEST, LONGEST_NARROW = 40, 16  # characters of a fault; a longer one leaves no room for its bar


@dataclass(frozen=True)
class Panel:
    """One figure of all faults. None: not known."""

    title: str
    values_s: tuple[float | None, ...]


def draw(faults: Sequence[str], panels: Sequence[Panel], sheet: Sheet) -> None:
    all_axes = sheet.rows([float(len(faults) * BAR_PX + TITLE_PX)] * len(panels))
    rows, names = range(len(faults)), [_cut(fault, LONGEST_NARROW if sheet.narrow else LONGEST) for fault in faults]
    known_s = [value_s for panel in panels for value_s in panel.values_s if value_s is not None]
    lowest_s, highest_s = min([*known_s, 0.0]), max([*known_s, 1.0])
    for axes, panel in zip(all_axes, panels, strict=True):
        for y, value_s in zip(rows, panel.values_s, strict=True):
            axes.barh(y, value_s or 0.0, color=BLUE, height=0.66)
            note(axes, written(value_s), (max(value_s or 0.0, 0.0), y), (5, 0), va="center")
        axes.set_yticks(list(rows), names)
        axes.invert_yaxis()
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="y", visible=False)
        axes.grid(axis="x")
        axes.set_xlim(lowest_s, highest_s + (highest_s - lowest_s) * (0.5 if sheet.narrow else 0.2))
        axes.xaxis.set_major_formatter(SHORT)
        axes.locator_params(axis="x", nbins=5)
        axes.set_title(panel.title, loc="left")


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def written(value_s: float | None) -> str:
    return "not known" if value_s is None else f"{value_s:,.1f} s"
