"""What the loss of each part of an engine cost: a panel for each figure, a bar for each fault."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reports.figures.style import BLUE, MUTED, SHORT, Sheet, note

BAR_PX, TITLE_PX = 24, 44


@dataclass(frozen=True)
class Panel:
    """One figure of all faults. None: not known."""

    title: str
    values: tuple[float | None, ...]
    digits: int = 1


def draw(faults: Sequence[str], panels: Sequence[Panel], sheet: Sheet) -> None:
    all_axes = sheet.rows([float(len(faults) * BAR_PX + TITLE_PX)] * len(panels))
    rows = range(len(faults))
    for axes, panel in zip(all_axes, panels, strict=True):
        known = [value for value in panel.values if value is not None]
        span = max([*known, 0.0]) - min([*known, 0.0]) or 1.0
        for y, value in zip(rows, panel.values, strict=True):
            axes.barh(y, value or 0.0, color=BLUE if value is not None else MUTED, height=0.66)
            text = "not known" if value is None else f"{value:,.{panel.digits}f}"
            note(axes, text, (max(value or 0.0, 0.0), y), (5, 0), va="center")
        axes.set_yticks(list(rows), list(faults))
        axes.invert_yaxis()
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="y", visible=False)
        axes.grid(axis="x")
        axes.set_xlim(min([*known, 0.0]), max([*known, 0.0]) + span * (0.5 if sheet.narrow else 0.2))
        axes.xaxis.set_major_formatter(SHORT)
        axes.locator_params(axis="x", nbins=5)
        axes.set_title(panel.title, loc="left")
