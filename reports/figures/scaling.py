"""The rate of an engine against the number of its cores: runs, the law with its interval, and the single process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.ticker import MaxNLocator

from reports.figures.style import BLUE, INK, MUTED, ORANGE, SHORT, Sheet, note

BAND, PALE = 0.2, 0.12
DASHED, DOTTED = (0, (4, 2)), (0, (1, 2))
HEIGHT_PX = 300.0


@dataclass(frozen=True)
class Mark:
    """A rate on a number of cores. Without an interval its ends are the rate."""

    cores: float
    per_s: float
    low_per_s: float
    high_per_s: float


@dataclass(frozen=True)
class Scaling:
    """The content of the picture. The curve of the law may be empty."""

    engine: str
    unit: str  # core or executor
    means: Sequence[Mark]
    runs: Sequence[tuple[float, float]]  # cores and rate
    curve: Sequence[Mark]
    reference: Mark | None


def draw(scaling: Scaling, sheet: Sheet) -> None:
    axes = sheet.rows([HEIGHT_PX], above_px=40.0 if sheet.narrow else 24.0)[0]
    first, last = scaling.means[0], scaling.means[-1]
    if reference := scaling.reference:
        axes.axhline(reference.per_s, color=ORANGE, linestyle=DASHED, label="reference, one process")
        axes.axhspan(reference.low_per_s, reference.high_per_s, color=ORANGE, alpha=PALE, linewidth=0)
    ends = [first.cores, max([last.cores, *(each.cores for each in scaling.curve)])]
    perfect = [first.per_s / first.cores * cores for cores in ends]
    axes.plot(ends, perfect, color=MUTED, linestyle=DOTTED, label="perfect scaling")
    if curve := scaling.curve:
        lows, highs = [each.low_per_s for each in curve], [each.high_per_s for each in curve]
        cores = [each.cores for each in curve]
        axes.fill_between(cores, lows, highs, color=BLUE, alpha=BAND, linewidth=0)
        axes.plot(cores, [each.per_s for each in curve], color=BLUE, label="the law, and its interval")
        axes.axvline(last.cores, color=MUTED, linewidth=0.8)
        note(axes, "measured", (last.cores, 0), (-4, 4), color=MUTED)
        note(axes, "predicted", (last.cores, 0), (4, 4), color=MUTED)
    where, rates = zip(*scaling.runs, strict=True)
    axes.plot(where, rates, "o", color=BLUE, alpha=0.45, markersize=4, label=f"a run of {scaling.engine}")
    for each in scaling.means:
        axes.plot([each.cores] * 2, [each.low_per_s, each.high_per_s], color=INK, linewidth=1.4, marker="_")
    axes.set_ylim(bottom=0)
    axes.margins(x=0.06)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.yaxis.set_major_formatter(SHORT)
    axes.set_title("events per second while it catches up", fontweight="bold")
    axes.set_xlabel(f"{scaling.unit}s of the engine")
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.08), ncols=2 if sheet.narrow else 4, columnspacing=1.2)
