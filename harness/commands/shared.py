"""What commands of all kinds take. Each imports it, so that it imports little itself."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness import completion

RUNS = Path("runs")
EXPERIMENTS = Path("experiments")

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object. Works anywhere in the line.")]
Run = Annotated[Path, typer.Argument(metavar="RUN", help="The directory of a run.", autocompletion=completion.run)]
