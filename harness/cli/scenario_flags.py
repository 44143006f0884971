"""Options of the commands that plan runs: a scenario, and groups of its keys."""

from __future__ import annotations

from typing import Annotated

import typer

from harness.cli import shell_completion
from harness.config import plan

# Keys that several commands take: those of the events, and those of the system.
EVENTS = ("workload", "seed", "campaigns", "partitions", "window", "watermark", "disorder")
SYSTEM = (
    "client",
    "kafka",
    "kafka_config",
    "redis",
    "redis_prefix",
    "sql",
    "reset",
    "master",
    "cluster",
    "checkpoint",
    "conf",
    "objective_p99_ms",
    "patience",
    "archive",
)


def usual(scenario: str) -> dict[str, str]:
    """Return the keys that a command's default scenario sets, as text for the help."""
    return {key: str(value) for key, value in plan.read_scenario(scenario)[1].items()}


Scenario = Annotated[
    str,
    typer.Argument(
        metavar="SCENARIO",
        help=f"Scenario: {', '.join(plan.scenarios())}, or the path of a .toml file.",
        autocompletion=shell_completion.scenario,
    ),
]
