"""CPU seconds per million events, a bar for each part of the run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.util.texts import three_digits
from reports.figures.style import BLUE, MUTED, SHORT, SKY, Sheet, note

BAR_PX = 26


@dataclass(frozen=True)
class Bar:
    """One part of a run. A user pays for the engine's parts; the others are ours."""

    part: str
    user_s: float  # per million events
    system_s: float
    peak_rss_mib: float
    engine: bool


def draw(bars: Sequence[Bar], per: str, sheet: Sheet) -> None:
    (axes,) = sheet.rows([float(len(bars) * BAR_PX + 14)])
    rows = range(len(bars))
    longest = max(bar.user_s + bar.system_s for bar in bars) or 1.0
    for y, bar in zip(rows, bars, strict=True):
        colour = BLUE if bar.engine else MUTED
        axes.barh(y, bar.user_s, color=colour, height=0.66)
        axes.barh(y, bar.system_s, left=bar.user_s, color=SKY if bar.engine else MUTED, alpha=0.6, height=0.66)
        memory = f", {bar.peak_rss_mib:,.0f} MiB" if bar.peak_rss_mib else ""
        used_s = bar.user_s + bar.system_s
        note(axes, f"{three_digits(used_s)} s{memory}", (used_s, y), (5, 0), va="center")
    axes.set_yticks(list(rows), [bar.part for bar in bars])
    axes.invert_yaxis()
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", visible=False)
    axes.grid(axis="x")
    axes.set_xlim(0, longest * (1.75 if sheet.narrow else 1.3))
    axes.xaxis.set_major_formatter(SHORT)
    axes.locator_params(axis="x", nbins=5)
    long = f"CPU seconds per million events {per} (dark: user, light: system)"
    axes.set_xlabel(f"CPU-s per million {per}" if sheet.narrow else long)
