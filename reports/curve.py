"""The figures of a search for its page, the terminal, JSON and CSV."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import numpy as np

from harness.experiments.curve import pulse as pulses_of
from harness.experiments.curve import service
from harness.experiments.curve.labels import Held
from harness.experiments.curve.plateau import Latencies, Measured
from harness.experiments.curve.pulse import Pulse
from harness.experiments.searching.search import digits
from harness.experiments.searching.searched import Searched
from reports.figures.style import duration
from reports.figures.throughput import Knee, Range, Rung
from reports.saved import csv_of

COLUMNS = ("events/s", "", "p50", "p90", "p99", "processed/s", "CPU-s/M")
ENDS = ("low", "mid", "high")
BANDS = ("p50_ms", "p90_ms", "p99_ms", "p999_ms", "achieved_per_s", "cpu_s_per_million", "load_cpu_s_per_million")
CURVE = ("offered_per_s", "held", "visits", *(f"{name}_{end}" for name in BANDS for end in ENDS), "most_ms")
FORETOLD, FAR = 60, 2.0  # points of the predicted curve, and its upper end in multiples of the objective
# Bands of latency: the bootstrap draws whole blocks of 20 s, never single events.
DRAWS, TAIL, SEED = 200, 0.025, 20_023
BEYOND = 10  # a quantile needs so many events beyond it in each of two repeats
BOTH = 2  # a far quantile needs so many visits


def knee(searched: Searched) -> Knee | None:
    """Return the interval of rates where p99 crosses the objective."""
    if searched.found.low_per_s is None:
        return None
    return Knee(searched.found.low_per_s, searched.found.high_per_s, "p99 crosses the objective")


def rungs(searched: Searched) -> tuple[Rung, ...]:
    """Return the figures of each rate, the lowest rate first."""
    held = {label.rate_per_s for label in searched.labels if label.held is Held.YES}
    return tuple(_rung(rate, own, held=rate in held) for rate, own in searched.visits.items())


def foretold(searched: Searched) -> list[tuple[float, float]]:
    """Predict p99 over the rates of the curve from the durations of batches. Empty if the engine reports no batches.
    Points far above the objective are dropped, because the drawing has no room for them.
    """
    batches = service.with_pulses(searched.measured)
    if batches is None or not searched.visits:
        return []
    highest_ms = FAR * searched.settings.life.objective_p99_ms
    rates = np.linspace(min(searched.visits), max(searched.visits), FORETOLD)
    points = [(float(rate), batches.p99_ms(float(rate))) for rate in rates]
    return [(rate, ms) for rate, ms in points if ms <= highest_ms]


def pulses(searched: Searched) -> list[Pulse]:
    """List the pulses of each engine run."""
    return [each for own in searched.lived for each in pulses_of.pulses(own)]


def pulse_in_words(pulse: Pulse) -> str:
    burst = f"{pulse.length_s:.0f} s at {pulse.rate_per_s:,.0f}/s, on {pulse.base_per_s:,.0f}/s"
    if pulse.why_not:
        return f"{burst}: not known, {pulse.why_not}"
    if pulse.drained_s is None or pulse.done_per_s is None:
        return f"{burst}: no more waited than before"
    return f"{burst}: worked off {pulse.drained_s:.0f} s after it began, at {digits(pulse.done_per_s)} events/s"


def _rung(rate_per_s: float, visits: Sequence[Measured], *, held: bool) -> Rung:
    return Rung(
        rate_per_s,
        achieved_per_s=_range([each.processed_per_s for each in visits]),
        p50_ms=_band(visits, 0.5),
        p99_ms=_band(visits, 0.99),
        held=held,
        p90_ms=_band(visits, 0.9),
        p999_ms=_band(visits, 0.999) if len(visits) >= BOTH else None,
        most_ms=_most_ms(visits),
        cpu_s_per_million=_range([per_million(each, each.engine_cpu_s) for each in visits]),
        load_cpu_s_per_million=_range([per_million(each, each.load_cpu_s) for each in visits]),
    )


def per_million(visit: Measured, cpu_s: float | None) -> float | None:
    done = (visit.processed_per_s or 0.0) * visit.plateau.length_s
    return None if cpu_s is None or done <= 0 else cpu_s / done * 1e6


def _band(visits: Sequence[Measured], share: float) -> Range | None:
    """The quantile over all visits; None if one has too few events, or too many were never seen."""
    own = [visit.events for visit in visits]
    if not own or any(each.samples * (1 - share) < BEYOND for each in own):
        return None
    all_ = Latencies(np.concatenate([each.blocks for each in own]))
    count, draw = len(all_.blocks), np.random.default_rng(SEED)
    drawn = [all_.quantile_ms(share, draw.integers(count, size=count)) for _ in range(DRAWS)]
    low, high = np.quantile(drawn, (TAIL, 1 - TAIL), method="nearest")
    mid = all_.quantile_ms(share)
    return Range(float(low), mid, float(high)) if np.isfinite([low, mid, high]).all() else None


def _most_ms(visits: Sequence[Measured]) -> float | None:
    """The longest latency that was seen. A maximum has no band."""
    found = max((visit.events.quantile_ms(1.0) for visit in visits), default=float("nan"))
    return float(found) if np.isfinite(found) else None


def _range(values: Sequence[float | None]) -> Range | None:
    known = [value for value in values if value is not None]
    return Range(min(known), sum(known) / len(known), max(known)) if known else None


def rows(searched: Searched) -> list[list[str]]:
    return [[*_row(searched, rung)] for rung in rungs(searched)]


def _row(searched: Searched, rung: Rung) -> Iterator[str]:
    yield f"{rung.offered_per_s:,.0f}"
    yield searched.label_of(rung.offered_per_s).held.value
    for latency in (rung.p50_ms, rung.p90_ms, rung.p99_ms):
        yield duration(latency.mid) if latency else "-"
    yield f"{rung.achieved_per_s.mid:,.0f}" if rung.achieved_per_s else "-"
    yield f"{rung.cpu_s_per_million.mid:,.3g}" if rung.cpu_s_per_million else "-"


def time_spent(searched: Searched) -> Iterator[str]:
    """Yield a line for each engine run with known parts."""
    for number, life in enumerate(searched.lives, start=1):
        if life.parts_s:
            told = ", ".join(f"{name} {seconds:,.0f} s" for name, seconds in life.parts_s.items())
            yield f"Engine run {number} took {life.seconds / 60:.1f} min: {told}."


def as_object(searched: Searched) -> dict[str, Any]:
    found = searched.found
    return {
        "command": "search",
        "verdict": found.outcome.value,
        "exit": found.outcome.exit_code,
        "sentence": found.sentence,
        "experiment": str(searched.path),
        "low_per_s": found.low_per_s,
        "high_per_s": found.high_per_s,
        "objective_p99_ms": searched.settings.life.objective_p99_ms,
        "second_way_per_s": found.answer.second_way_per_s if found.answer else None,
        "shares_of_reference": searched.shares,
        "reference": msgspec.to_builtins(searched.units),
        "drift": found.answer.drift if found.answer else None,
        "pulses": msgspec.to_builtins(pulses(searched)),
        "rates": [
            {**msgspec.to_builtins(rung), "held": label.held.value, "reason": label.reason, "visits": label.visits}
            for rung in rungs(searched)
            for label in [searched.label_of(rung.offered_per_s)]
        ],
        "lives": msgspec.to_builtins(searched.lives),
    }


def as_csv(searched: Searched) -> str:
    """Return the numbers of the drawing. An empty field was not measured."""
    return csv_of([CURVE, *_lines(searched)])


def _lines(searched: Searched) -> Iterator[Sequence[object]]:
    for rung in rungs(searched):
        label = searched.label_of(rung.offered_per_s)
        ends = [end for name in BANDS for end in _ends(getattr(rung, name))]
        most = "" if rung.most_ms is None else f"{rung.most_ms:.6g}"
        yield [rung.offered_per_s, label.held.value, label.visits, *ends, most]


def _ends(band: Range | None) -> Sequence[str]:
    return [f"{end:.6g}" for end in (band.low, band.mid, band.high)] if band else ["", "", ""]
