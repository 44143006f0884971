"""The answer and the figures of a gate as OpenMetrics text.

All of them are gauges, which also exist in the older text format of Prometheus: node_exporter's textfile collector and
a push gateway read the same file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from harness.experiments.gating.gate import ANY, Answer, Effect
from harness.model import Outcome
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

Labels = Mapping[str, str]


@dataclass(frozen=True)
class Gauge:
    """One metric family with its samples."""

    name: str  # after `streamgauge_gate_`
    unit: str  # its end, if it has one
    help: str
    samples: tuple[tuple[Labels, float], ...]


def of_gate(record: Record) -> str:
    """Return the text. Each sample has the engine as a label, so that one Prometheus can hold several gates."""
    engine = {"engine": record.engine}
    lines = [line for gauge in _gauges(record) for line in _lines(gauge, engine)]
    return "\n".join([*lines, "# EOF"]) + "\n"


def _lines(gauge: Gauge, common: Labels) -> Iterator[str]:
    name = f"streamgauge_gate_{gauge.name}"
    yield f"# TYPE {name} gauge"
    if gauge.unit:
        yield f"# UNIT {name} {gauge.unit}"
    yield f"# HELP {name} {_escaped(gauge.help)}"
    for labels, value in gauge.samples:
        told = ",".join(f'{key}="{_escaped(text)}"' for key, text in {**common, **labels}.items())
        yield f"{name}{{{told}}} {value!r}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _gauges(record: Record) -> Iterator[Gauge]:
    found, asked = record.found, record.asked
    told = {"base": asked["base"], "head": asked["head"], "streamgauge": str(record.environment.get("streamgauge", ""))}
    told |= {"machine": str(record.environment.get("machine", ""))}
    yield Gauge("info", "", "What was compared, by what, on what.", ((told, 1),))
    answers = tuple(({"answer": each.value}, int(each is found.answer)) for each in Answer)
    yield Gauge("answer", "", "1 at the answer of the gate.", answers)
    verdicts = tuple(
        ({"side": name, "verdict": each.value}, int(each is side.outcome))
        for name, side in found.sides.items()
        for each in Outcome
    )
    yield Gauge("counts", "", "1 at the verdict on what a side counted.", verdicts)
    yield Gauge("starts", "", "Starts of each side.", (({}, found.starts),))
    if asked["threshold"] < ANY:
        about = "A head that takes more by this share has regressed."
        yield Gauge("threshold_ratio", "ratio", about, (({}, asked["threshold"]),))
    yield from _compared(found.effects)
    for effect in found.effects:
        yield from _of_sides(record, effect)


def _compared(effects: Iterable[Effect]) -> Iterator[Gauge]:
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
        if samples:
            yield Gauge(name, "ratio", what, samples)


def _of_sides(record: Record, effect: Effect) -> Iterator[Gauge]:
    values = record.typical(effect)
    if values:
        unit, factor = UNITS[effect.unit]
        words = effect.metric.replace("-", "_").replace(" ", "_")
        name = f"{words}_{unit}"
        samples = tuple(({"side": side}, value * factor) for side, value in values.items())
        about = f"{effect.metric} in {record.burst}: the median over rounds."
        yield Gauge(name, unit, about, samples)
