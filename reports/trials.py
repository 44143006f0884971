"""What is shown of a search: its trials and what they found."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from harness.experiments.search import Answer, Trial

COLUMNS = ("stage", "events/s", "", "p50 ms", "p99 ms", "CPU-s/M")


def rows(trials: Sequence[Trial]) -> list[list[str]]:
    return [_row(trial) for trial in trials]


def as_object(experiment: Path, trials: Sequence[Trial], found: Answer) -> dict[str, Any]:
    return {
        "command": "search",
        "verdict": found.outcome.value,
        "exit": found.outcome.exit_code,
        "sentence": found.sentence,
        "experiment": str(experiment),
        "held_per_s": found.held_per_s,
        "failed_per_s": found.failed_per_s,
        "limited": found.limited,
        "trials": msgspec.to_builtins(trials),
    }


def _row(trial: Trial) -> list[str]:
    figures = (trial.p50_ms, trial.p99_ms, trial.cpu_s_per_million)
    told = ["-" if figure is None else f"{figure:,.1f}" for figure in figures]
    return [trial.stage.value, f"{trial.rate_per_s:,.0f}", trial.held.value, *told]
