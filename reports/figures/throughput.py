"""Latency against throughput, with the interval in which an engine stops keeping up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes

from reports.figures.style import (
    BLUE,
    DURATION,
    GREEN,
    INK,
    MUTED,
    ORANGE,
    PURPLE,
    RED,
    SHORT,
    SKY,
    Sheet,
    line_of_objective,
    log_ticks,
    note,
    short,
)

LOG_RATIO = 20.0


@dataclass(frozen=True)
class Range:
    """The median over repeats with the lowest and the highest value. All three are equal for a single run."""

    low: float
    mid: float
    high: float


@dataclass(frozen=True)
class Rung:
    """The figures at one offered rate. None: not measured."""

    offered_per_s: float
    achieved_per_s: Range | None
    p50_ms: Range | None
    p99_ms: Range | None
    held: bool
    p90_ms: Range | None = None
    p999_ms: Range | None = None
    most_ms: float | None = None
    cpu_s_per_million: Range | None = None
    load_cpu_s_per_million: Range | None = None


@dataclass(frozen=True)
class Knee:
    """The sustainable rate lies in [held, failed]; `failed` is None when the load generator was the limit."""

    held_per_s: float
    failed_per_s: float | None
    words: str = "the highest that holds"


def draw(
    rungs: Sequence[Rung],
    knee: Knee | None,
    objective_p99_ms: float | None,
    sheet: Sheet,
    foretold_p99: Sequence[tuple[float, float]] = (),
) -> None:
    """`foretold_p99`: pairs of a rate and the p99 (ms) that the durations of batches predict."""
    rungs = sorted(rungs, key=lambda rung: rung.offered_per_s)
    has_cost = any(rung.cpu_s_per_million for rung in rungs)
    upper, lower, *costs = sheet.rows([240.0, 140.0, 110.0][: 3 if has_cost else 2])
    _latencies(upper, rungs, objective_p99_ms, foretold_p99)
    upper.legend(loc="lower right", bbox_to_anchor=(1.0, 1.02), ncols=3 if sheet.narrow else 6)
    _bands(lower, rungs, lambda rung: rung.achieved_per_s, GREEN, "processed")
    top = max(rung.offered_per_s for rung in rungs) * 1.05
    lower.plot([0, top], [0, top], color=MUTED, linewidth=1.0, linestyle=(0, (1, 2)), label="offered")
    lower.set_title("processed, events per second", fontweight="bold")
    lower.yaxis.set_major_formatter(SHORT)
    lower.legend(loc="upper left")
    for cost in costs:
        _bands(cost, rungs, lambda rung: rung.cpu_s_per_million, PURPLE, "engine")
        cost.set_title("CPU seconds of the engine per million events", fontweight="bold")
    for axes in (upper, lower, *costs):
        axes.set_xlim(0, top)
        _zone(axes, knee, top)
    for axes in (lower, *costs):
        axes.margins(y=0.15)
        axes.set_ylim(bottom=0)
    _name_zone(upper, knee, top, sheet.narrow)
    last = [lower, *costs][-1]
    last.xaxis.set_major_formatter(SHORT)
    last.set_xlabel("offered, events per second")


def _latencies(
    axes: Axes,
    rungs: Sequence[Rung],
    objective_p99_ms: float | None,
    foretold_p99: Sequence[tuple[float, float]],
) -> None:
    quantiles: tuple[tuple[str, str, Callable[[Rung], Range | None]], ...] = (
        ("p50", BLUE, lambda rung: rung.p50_ms),
        ("p90", SKY, lambda rung: rung.p90_ms),
        ("p99", ORANGE, lambda rung: rung.p99_ms),
        ("p99.9", RED, lambda rung: rung.p999_ms),
    )
    for label, colour, of in quantiles:
        if any(of(rung) for rung in rungs):
            _bands(axes, rungs, of, colour, label)
    if foretold_p99:
        axes.plot(
            *zip(*foretold_p99, strict=True), color=ORANGE, linestyle=(0, (1, 2)), linewidth=1.2, label="foretold"
        )
    longest = [(rung.offered_per_s, rung.most_ms) for rung in rungs if rung.most_ms is not None]
    if longest:
        axes.plot(*zip(*longest, strict=True), "_", color=MUTED, markersize=9, label="longest")
    if objective_p99_ms is not None:
        line_of_objective(axes, "objective for p99", objective_p99_ms)
    _latency_axis(axes, rungs, objective_p99_ms)
    axes.set_title("latency", fontweight="bold")


def _bands(axes: Axes, rungs: Sequence[Rung], of: Callable[[Rung], Range | None], colour: str, label: str) -> None:
    """The band shows the spread of repeats. A rate that was not sustained has an open mark."""
    seen = [(rung, value) for rung in rungs if (value := of(rung)) is not None]
    rates = [rung.offered_per_s for rung, _ in seen]
    axes.fill_between(rates, [v.low for _, v in seen], [v.high for _, v in seen], color=colour, alpha=0.2, linewidth=0)
    axes.plot(rates, [value.mid for _, value in seen], color=colour, label=label)
    for rung, value in seen:
        inside = colour if rung.held else "none"
        axes.plot(rung.offered_per_s, value.mid, "o", markersize=5, color=colour, markerfacecolor=inside)


def _latency_axis(axes: Axes, rungs: Sequence[Rung], objective_p99_ms: float | None) -> None:
    """Leaves room for words above the highest mark or line."""
    ranges = [each for rung in rungs for each in (rung.p50_ms, rung.p90_ms, rung.p99_ms, rung.p999_ms)]
    values = [each.mid for each in ranges if each is not None and each.mid > 0]
    values += [rung.most_ms for rung in rungs if rung.most_ms]
    values += [objective_p99_ms] if objective_p99_ms else []
    axes.margins(y=0.18)
    if values and max(values) > LOG_RATIO * min(values):
        log_ticks(axes)
    else:
        axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(DURATION)


def _zone(axes: Axes, knee: Knee | None, top: float) -> None:
    if knee is None:
        return
    axes.axvline(knee.held_per_s, color=RED, linewidth=1.0)
    if knee.failed_per_s is not None:
        axes.axvspan(knee.held_per_s, knee.failed_per_s, color=RED, alpha=0.15, linewidth=0)
        axes.axvspan(knee.failed_per_s, top, color=RED, alpha=0.06, linewidth=0)


def _name_zone(axes: Axes, knee: Knee | None, top: float, narrow: bool) -> None:
    """The text goes to the side with more room."""
    if knee is None:
        return
    beyond = knee.failed_per_s or knee.held_per_s
    right = beyond < top / 2
    text = f"at least {short(knee.held_per_s)}/s, generator-limited"
    if knee.failed_per_s is not None:
        text = f"{short(knee.held_per_s)} to {short(knee.failed_per_s)}/s" + ("" if narrow else f": {knee.words}")
    at, apart = ((beyond, 1), (4, -4)) if right else ((knee.held_per_s, 1), (-4, -4))
    note(axes, text, at, apart, xycoords=("data", "axes fraction"), va="top", color=INK)
