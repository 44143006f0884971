"""Options that commands of all kinds take. Every command imports this module, so it imports little itself."""

from __future__ import annotations

import functools
import inspect
import json
import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any, Never

import typer

from harness.cli import shell_completion
from harness.model import Exit, Outcome
from harness.terminal import console, notification

RUNS = Path("runs")
EXPERIMENTS = Path("experiments")

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object. Allowed anywhere in the line.")]
Quiet = Annotated[
    bool, typer.Option("--quiet", help="Show no progress, and of the result only the verdict. Allowed anywhere.")
]
Notify = Annotated[
    bool, typer.Option("--notify", help="Ring the bell, and show a notification with the verdict, when it has ended.")
]
Run = Annotated[
    Path, typer.Argument(metavar="RUN", help="The directory of a run.", autocompletion=shell_completion.run)
]


def for_long(name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add `--quiet`, which harness/terminal/screens.py obeys, and `--notify` to a command that takes long."""

    def with_flags(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def obeying(*args: Any, quiet: bool = False, notify: bool = False, **values: Any) -> None:
            console.quieten(quiet)
            with notification.at_end(name) if notify else nullcontext():
                command(*args, **values)

        own = inspect.signature(command, eval_str=True)
        flags = (
            Parameter(flag, Parameter.KEYWORD_ONLY, default=False, annotation=kind)
            for flag, kind in (("quiet", Quiet), ("notify", Notify))
        )
        obeying.__signature__ = own.replace(parameters=[*own.parameters.values(), *flags])  # type: ignore[attr-defined]
        return obeying

    return with_flags


def answer(as_json: bool, told: Mapping[str, Any], text: str, code: int = Exit.PASS) -> None:
    """Print the answer of a command without a verdict."""
    print(form(as_json, told, text, code), flush=True)


def form(as_json: bool, told: Mapping[str, Any], text: str, code: int = Exit.PASS) -> str:
    """Return an answer as it is printed: its text, or the `--json` object with the exit code."""
    return json.dumps({**told, "exit": int(code)}) if as_json else text


def conclude(as_json: bool, told: Mapping[str, Any], lines: Iterable[str], outcome: Outcome) -> Never:
    """Print the answer of a command with a verdict, and end it with the exit code of that."""
    lines = [*lines]
    notification.verdict(lines[0])
    if as_json:
        print(json.dumps(told), flush=True)
    else:
        console.show_result(lines, outcome)
    raise typer.Exit(outcome.exit_code)


def a_number(value: float | None) -> float | None:
    """Refuse `nan` for an option with bounds, since it passes every comparison with them."""
    if value is not None and math.isnan(value):
        raise typer.BadParameter("nan is not a number")
    return value
