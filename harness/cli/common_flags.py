"""What commands of all kinds take. Each imports it, so that it imports little itself."""

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

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object. Works anywhere in the line.")]
Run = Annotated[
    Path, typer.Argument(metavar="RUN", help="The directory of a run.", autocompletion=shell_completion.run)
]


def answer(told: Mapping[str, Any], code: int = Exit.PASS) -> None:
    """What `--json` prints of a command that has no verdict: one object, with the exit code like all others."""
    print(json.dumps({**told, "exit": int(code)}), flush=True)


def a_number(value: float | None) -> float | None:
    """Of an option with bounds: `nan` is in none, and passes all of them."""
    if value is not None and math.isnan(value):
        raise typer.BadParameter("nan is no number")
    return value
