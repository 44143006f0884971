"""Options that commands of all kinds take. Every command imports this module, so it imports little itself."""

from __future__ import annotations

import functools
import inspect
import json
import math
from collections.abc import Callable, Iterable, Mapping
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any, Never

import typer

from harness.cli import shell_completion
from harness.model import Exit, Outcome
from harness.terminal import console

RUNS = Path("runs")
EXPERIMENTS = Path("experiments")

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object. Allowed anywhere in the line.")]
Quiet = Annotated[
    bool, typer.Option("--quiet", help="Show no progress, and of the result only the verdict. Allowed anywhere.")
]
Run = Annotated[
    Path, typer.Argument(metavar="RUN", help="The directory of a run.", autocompletion=shell_completion.run)
]


def with_quiet(command: Callable[..., None]) -> Callable[..., None]:
    """Add `--quiet` to a command that takes long. harness/terminal/screens.py obeys it."""

    @functools.wraps(command)
    def obeying(*args: Any, quiet: bool = False, **values: Any) -> None:
        console.quieten(quiet)
        command(*args, **values)

    own = inspect.signature(command, eval_str=True)
    flag = Parameter("quiet", Parameter.KEYWORD_ONLY, default=False, annotation=Quiet)
    obeying.__signature__ = own.replace(parameters=[*own.parameters.values(), flag])  # type: ignore[attr-defined]
    return obeying


def answer(as_json: bool, told: Mapping[str, Any], text: str, code: int = Exit.PASS) -> None:
    """Print the answer of a command without a verdict: its text, or the `--json` object with the exit code."""
    print(json.dumps({**told, "exit": int(code)}) if as_json else text, flush=True)


def conclude(as_json: bool, told: Mapping[str, Any], lines: Iterable[str], outcome: Outcome) -> Never:
    """Print the answer of a command with a verdict, and end it with the exit code of that."""
    if as_json:
        print(json.dumps(told), flush=True)
    else:
        console.show_result([*lines], outcome)
    raise typer.Exit(outcome.exit_code)


def a_number(value: float | None) -> float | None:
    """Refuse `nan` for an option with bounds, since it passes every comparison with them."""
    if value is not None and math.isnan(value):
        raise typer.BadParameter("nan is not a number")
    return value
