"""Options that commands of all kinds take. Every command imports this module, so it imports little itself."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from harness.cli import shell_completion
from harness.model import Exit

RUNS = Path("runs")
EXPERIMENTS = Path("experiments")

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object. Allowed anywhere in the line.")]
Run = Annotated[
    Path, typer.Argument(metavar="RUN", help="The directory of a run.", autocompletion=shell_completion.run)
]


def answer(told: Mapping[str, Any], code: int = Exit.PASS) -> None:
    """Print the `--json` object of a command without a verdict, with the exit code as in all such objects."""
    print(json.dumps({**told, "exit": int(code)}), flush=True)


def a_number(value: float | None) -> float | None:
    """Refuse `nan` for an option with bounds, since it passes every comparison with them."""
    if value is not None and math.isnan(value):
        raise typer.BadParameter("nan is not a number")
    return value
