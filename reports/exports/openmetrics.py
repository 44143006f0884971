"""The answer and the figures of a gate as OpenMetrics text.

All of them are gauges, which also exist in the older text format of Prometheus: node_exporter's textfile collector and
a push gateway read the same file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from harness.experiments.gating.gate import ANY, Answer, Effect
from harness.model import Outcome
from reports.exports.openmetrics_text import Family, Labels, Sample, as_text
from reports.gated import Record

# From a unit on the page to the base unit that ends a metric's name, and the factor between them.
UNITS = {
    "CPU-s per million events": ("cpu_seconds_per_event", 1e-6),
    "MiB per million events": ("bytes_per_event", 2.0**20 * 1e-6),
    "commands per thousand events": ("per_event", 1e-3),
    "rows per thousand events": ("per_event", 1e-3),
    "MiB": ("bytes", 2.0**20),
    "ms per million events": ("seconds_per_event", 1e-9),
    "ms": ("seconds", 1e-3),
}


def of_gate(record: Record) -> str:
    """Return the text. Each sample has the engine as a label, so that one Prometheus can hold several gates."""
    return as_text(_gauges(record), {"engine": record.engine})


def _gauge(name: str, unit: str, about: str, samples: Iterable[tuple[Labels, float]]) -> Family:
    return Family(f"streamgauge_gate_{name}", "gauge", unit, about, tuple(Sample(*each) for each in samples))


def _gauges(record: Record) -> Iterator[Family]:
    found, asked = record.found, record.asked
    told = {"base": asked["base"], "head": asked["head"], "streamgauge": str(record.environment.get("streamgauge", ""))}
    told |= {"machine": str(record.environment.get("machine", ""))}
    yield _gauge("info", "", "What was compared, by what, on what.", ((told, 1),))
    answers = tuple(({"answer": each.value}, int(each is found.answer)) for each in Answer)
    yield _gauge("answer", "", "1 at the answer of the gate.", answers)
    verdicts = tuple(
        ({"side": name, "verdict": each.value}, int(each is side.outcome))
        for name, side in found.sides.items()
        for each in Outcome
    )
    yield _gauge("counts", "", "1 at the verdict on what a side counted.", verdicts)
    yield _gauge("starts", "", "Starts of each side.", (({}, found.starts),))
    if asked["threshold"] < ANY:
        about = "A head that takes more by this share has regressed."
        yield _gauge("threshold_ratio", "ratio", about, (({}, asked["threshold"]),))
    yield from _compared(found.effects)
    for effect in found.effects:
        yield from _of_sides(record, effect)


def _compared(effects: Iterable[Effect]) -> Iterator[Family]:
    """Empty if the head's counts are wrong, because there are no effects then."""
    parts: dict[str, tuple[str, Callable[[Effect], float]]] = {
        "head_by_base_ratio": ("What the head takes by what the base takes.", lambda e: e.head.estimate),
        "head_by_base_low_ratio": ("The least that it may be.", lambda e: e.head.low),
        "head_by_base_high_ratio": ("The most that it may be.", lambda e: e.head.high),
        "base_by_itself_ratio": (
            "The same of the base by itself, where nothing differs.",
            lambda e: e.control.estimate,
        ),
        "detectable_ratio": ("The smallest slowdown that would have been found.", lambda e: e.detectable),
    }
    for name, (what, value) in parts.items():
        samples = tuple(({"metric": each.metric}, value(each)) for each in effects)
        yield _gauge(name, "ratio", what, samples)


def _of_sides(record: Record, effect: Effect) -> Iterator[Family]:
    values = record.typical(effect)
    if values:
        unit, factor = UNITS[effect.unit]
        words = effect.metric.replace("-", "_").replace(" ", "_")
        name = f"{words}_{unit}"
        samples = tuple(({"side": side}, value * factor) for side, value in values.items())
        about = f"{effect.metric} in {record.burst}: the median over rounds."
        yield _gauge(name, unit, about, samples)
