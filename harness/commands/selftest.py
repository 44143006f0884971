"""`streamgauge selftest`."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from harness import console
from harness.commands.shared import Json
from harness.experiments.selftest import drive, report


def selftest(
    clean: Annotated[int, typer.Option(min=0, help="So many runs without a bug, all of which have to PASS.")] = 50,
    seed: Annotated[int, typer.Option(help="Decides what the clean runs are.")] = 1,
    as_json: Json = False,
) -> None:
    """Is the checker shown to fail? Planted bugs, sinks of known class, and checkers that are wrong on purpose."""
    found = drive.selftest(clean, seed, console.say)
    if as_json:
        print(json.dumps(report.as_object(found)))
    else:
        console.show_result(report.lines(found), found.outcome)
    raise typer.Exit(found.outcome.exit_code)
