"""Metric families as OpenMetrics text. It knows neither a gate nor a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"

Labels = Mapping[str, str]


class Sample(NamedTuple):
    """A value. `suffix` is what its name has behind that of the family, such as `_total` or `_count`."""

    labels: Labels
    value: float
    suffix: str = ""


@dataclass(frozen=True)
class Family:
    """One metric family with its samples."""

    name: str
    kind: str  # gauge, counter or summary
    unit: str  # the end of the name, if it has a unit
    help: str
    samples: tuple[Sample, ...]


def as_text(families: Iterable[Family], common: Labels) -> str:
    """Return the text. Each sample has the common labels, so that one Prometheus can hold several sources."""
    lines = [line for family in families if family.samples for line in _lines(family, common)]
    return "\n".join([*lines, "# EOF"]) + "\n"


def _lines(family: Family, common: Labels) -> Iterator[str]:
    yield f"# TYPE {family.name} {family.kind}"
    if family.unit:
        yield f"# UNIT {family.name} {family.unit}"
    yield f"# HELP {family.name} {_escaped(family.help)}"
    for labels, value, suffix in family.samples:
        told = ",".join(f'{key}="{_escaped(text)}"' for key, text in {**common, **labels}.items())
        yield f"{family.name}{suffix}{{{told}}} {value!r}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
