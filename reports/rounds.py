"""A repeated run as tables and JSON."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from harness.experiments.repeat import Repeated
from harness.measuring.measurement import Quantiles
from harness.measuring.stats import Interval
from harness.util.texts import three_digits

INTERVALS = ("figure", "median", "95 % interval", "rounds")
PERCENTILES = ("all samples (ms)", "p50", "p90", "p99", "p99.9", "max", "events")
ROUNDS = ("seed", "verdict", "run")

Table = tuple[tuple[str, ...], list[list[str]]]


def tables(done: Repeated) -> Iterator[Table]:
    """Yield the header and the rows of each table that has rows."""
    if done.intervals:
        yield INTERVALS, [_interval(name, each) for name, each in done.intervals.items()]
    if done.percentiles:
        yield PERCENTILES, [_percentiles(way, each) for way, each in done.percentiles.items()]
    yield ROUNDS, [[str(each.seed), each.outcome.value, Path(each.run).name] for each in done.rounds]


def as_object(done: Repeated, experiment: Path, rounds: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the JSON object. `rounds` are the objects of the single runs."""
    return {
        "command": "run",
        "verdict": done.outcome.value,
        "exit": done.outcome.exit_code,
        "sentence": done.sentence,
        "run": str(experiment),
        "slack": max((each["slack"] for each in rounds), default=0),
        "rounds": rounds,
        "intervals": msgspec.to_builtins(done.intervals),
        "percentiles": msgspec.to_builtins(done.percentiles),
    }


def _interval(name: str, interval: Interval) -> list[str]:
    known = interval.low is not None and interval.high is not None
    between = f"{_number(interval.low)} to {_number(interval.high)}" if known else "-"
    return [name, _number(interval.median), between, str(interval.rounds)]


def _percentiles(way: str, figures: Quantiles) -> list[str]:
    shares = (figures.p50, figures.p90, figures.p99, figures.p999, figures.max)
    return [way, *("never" if value is None else f"{value:,.0f}" for value in shares), f"{figures.count:,}"]


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return three_digits(value)
