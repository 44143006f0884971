"""An engine on several numbers of cores or executors, as text for a terminal, and as JSON."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from harness.experiments.compare import REFERENCE
from harness.experiments.folder import Folder
from harness.experiments.scale import KIND, Cores, Point, Scaled, ScaleRan, ScaleRequest, listed
from harness.experiments.scaling_law import Estimate
from harness.install.origin import COMMAND
from harness.util.texts import three_digits
from reports.command_flags import flag, number

AFTER = ("events/s", "times", "of perfect", "CPU-s/M", "runs")
UNKNOWN = "-"


@dataclass(frozen=True)
class Record:
    """Everything that a page or an export is made of."""

    folder: Folder
    environment: Mapping[str, Any]
    found: Scaled


def read(folder: Folder) -> Record:
    asked: ScaleRequest = folder.part("asked", ScaleRequest)
    done: tuple[ScaleRan, ...] = folder.part("done", tuple[ScaleRan, ...])
    return Record(folder, folder.part("environment", dict[str, Any]), Scaled(asked, done))


def header(found: Scaled) -> tuple[str, ...]:
    return ("engine", f"{found.asked.unit}s", *AFTER)


def rows(found: Scaled, *, whole: bool = False) -> list[list[str]]:
    """Return a row for each number of cores, and one of the reference. `whole`: wider than a terminal, with the
    intervals of all figures.
    """
    smallest = min(found.rates, default=1)
    own = [_row(found.asked.engine, each, smallest, whole=whole) for each in found.points]
    unknown = [cores for cores in found.asked.cores if cores not in found.rates]
    own += [[found.asked.engine, f"{cores:g}", *[UNKNOWN] * len(AFTER)] for cores in unknown]
    return own + ([_row(REFERENCE, found.reference, 0)] if found.reference else [])


def _row(engine: str, point: Point, smallest: Cores, *, whole: bool = False) -> list[str]:
    """`smallest`: the number of cores that it is compared with; 0: with none."""
    times = [UNKNOWN] * 2
    if smallest:
        times = [f"{point.times.value:.2f}", f"{point.times.value * smallest / point.cores:.0%}"]
        if whole and point.times.low is not None and point.times.low != point.times.high:
            times[0] += f" ({point.times.low:.2f} to {point.times.high:.2f})"
    cost = UNKNOWN if point.cpu_s_per_million is None else three_digits(point.cpu_s_per_million)
    return [engine, f"{point.cores:g}", rate(point.rate), *times, cost, str(point.runs)]


def rate(value: Estimate) -> str:
    """Write a rate with three digits, which is more than its precision, and its interval."""
    if value.low is None or value.high is None:
        return _digits(value.value)
    return f"{_digits(value.value)} ({_digits(value.low)} to {_digits(value.high)})"


def _digits(per_s: float) -> str:
    return f"{float(f'{per_s:.3g}'):,.0f}"


def command(found: Scaled) -> str:
    asked = found.asked
    wanted = ["--for", listed(asked.wanted)] if asked.wanted else []
    flags = [word for name, value in asked.flags.items() for word in flag(name, value)]
    own = ["--engine", asked.engine, f"--{asked.unit}s", listed(asked.cores), *wanted]
    often = ["--rate", number(asked.settings.catch_up_per_s), "--repeat", str(asked.settings.rounds)]
    return shlex.join([COMMAND, KIND, *own, *often, *flags])


def as_object(found: Scaled, experiment: Path) -> dict[str, Any]:
    law, cost = found.law, found.cost
    return {
        "command": "scale",
        "verdict": found.outcome.value,
        "exit": found.outcome.exit_code,
        "sentence": found.sentence,
        "experiment": str(experiment),
        "unit": found.asked.unit,
        "points": msgspec.to_builtins(found.points),
        "reference": msgspec.to_builtins(found.reference),
        "law": law
        and {"contention": msgspec.to_builtins(law.contention), "coherency": msgspec.to_builtins(law.coherency)},
        "cost": cost and {**msgspec.to_builtins(cost), "sentence": cost.sentence},
        "predicted": {str(cores): msgspec.to_builtins(each) for cores, each in found.predicted.items()},
        "furthest": found.furthest,
        "notes": [*found.notes()],
    }
