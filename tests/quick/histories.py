"""Histories of gates that never were."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np

from harness.experiments.gating.gate import Answer
from harness.experiments.gating.history import Entry, Figure, Stood
from harness.model import Outcome

BEGUN = datetime(2026, 3, 1, 4, 30, tzinfo=UTC)
MACHINE = {
    "machine": "Linux x86_64, 4 cores, 16 GB",
    "cpu": "AMD EPYC 7763 64-Core Processor (family 25, model 1)",
    "cores": "4",
    "kernel": "6.11.0-1018",
    "java": "17",
    "python": "3.12.3",
    "streamgauge": "0.1.0",
    "kafka": "4.3.1",
}
OTHER_CPU = "Intel(R) Xeon(R) Platinum 8370C (family 6, model 106)"
SPARK = {"pyspark": "4.1.3"}
UNITS = {"cost": ("CPU-s per million events", 15.0), "memory": ("MiB", 900.0), "latency p99": ("ms", 1200.0)}


def figure(metric: str = "cost", ratio: float = 1.0, half: float = 0.02) -> Figure:
    unit, took = UNITS[metric]
    answer = Answer.REGRESSED if ratio - half > 1 and ratio > 1.05 else Answer.OK
    return Figure(
        metric, unit, ratio, ratio - half, ratio + half, 0.98, half / 2.3, half * 1.4, answer, took, took * ratio
    )


def entry(number: int = 0, *figures: Figure, cpu: str = "", spark: str = "", **changes: object) -> Entry:
    """The gate of the night so many days after the first one."""
    found = figures or (figure(),)
    answer = Answer.REGRESSED if any(each.answer is Answer.REGRESSED for each in found) else Answer.OK
    versions = {"pyspark": spark} if spark else SPARK
    environment: Mapping[str, str] = MACHINE | ({"cpu": cpu} if cpu else {})
    made = Entry(
        at=BEGUN + timedelta(days=number),
        engine="ad-counts/absolute",
        base=Stood("v1.0", Outcome.PASS, f"{7:040x}", versions),
        head=Stood("main", Outcome.PASS, f"{number * 2654435761 % 16**12:012x}" + "0" * 28, versions),
        answer=answer,
        sentence="; ".join(f"{each.metric} {each.ratio - 1:+.1%}" for each in found),
        threshold=0.05,
        rounds=40,
        burst_events=0,
        round_events=100_000,
        flags={},
        environment=environment,
        metrics=found,
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def many(count: int, ratio: Callable[[int], float] = lambda _: 1.0, noise: float = 0.01, **what: str) -> list[Entry]:
    """A gate a night, each with all metrics."""
    draws = np.random.default_rng(1)
    return [
        entry(number, *(figure(metric, ratio(number) * (1 + noise * draws.normal())) for metric in UNITS), **what)
        for number in range(count)
    ]
