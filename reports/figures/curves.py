"""Latency against throughput of several engines in one drawing: p99, CPU cost per event, and the interval of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullLocator

from reports.figures.style import DURATION, SHORT, Sheet, line_of_objective, log_ticks
from reports.figures.throughput import Knee, Range, Rung

BAND, PALE = 0.2, 0.12


@dataclass(frozen=True)
class Line:
    """One engine."""

    label: str
    colour: str
    rungs: tuple[Rung, ...]
    knee: Knee | None  # None: no interval is known


def draw(lines: Sequence[Line], objective_p99_ms: float, sheet: Sheet) -> None:
    upper, lower = sheet.rows([280.0, 150.0], above_px=20.0)
    for line in lines:
        _one(upper, line, lambda rung: rung.p99_ms)
        _one(lower, line, lambda rung: rung.cpu_s_per_million)
        if line.knee and line.knee.failed_per_s:
            upper.axvspan(line.knee.held_per_s, line.knee.failed_per_s, color=line.colour, alpha=PALE, linewidth=0)
    line_of_objective(upper, "objective", objective_p99_ms)
    log_ticks(upper)
    upper.margins(y=0.12)
    upper.yaxis.set_major_formatter(DURATION)
    upper.set_title("p99 of latency", fontweight="bold")
    upper.legend(loc="lower right", bbox_to_anchor=(1.0, 1.02), ncols=3 if sheet.narrow else 5)
    lower.set_title("CPU seconds of the engine per million events", fontweight="bold")
    lower.margins(y=0.15)
    lower.set_ylim(bottom=0)
    lower.set_xscale("log")
    lower.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=12))
    lower.xaxis.set_minor_locator(NullLocator())
    lower.xaxis.set_major_formatter(SHORT)
    lower.set_xlabel("offered, events per second")


def _one(axes: Axes, line: Line, of: Callable[[Rung], Range | None]) -> None:
    """Marks are filled where the rate was sustained."""
    seen = [(rung, value) for rung in line.rungs if (value := of(rung)) is not None]
    rates = [rung.offered_per_s for rung, _ in seen]
    lows, mids, highs = ([getattr(value, end) for _, value in seen] for end in ("low", "mid", "high"))
    axes.fill_between(rates, lows, highs, color=line.colour, alpha=BAND, linewidth=0)
    axes.plot(rates, mids, color=line.colour, label=line.label)
    for rung, value in seen:
        inside = line.colour if rung.held else "none"
        axes.plot(rung.offered_per_s, value.mid, "o", markersize=4, color=line.colour, markerfacecolor=inside)
