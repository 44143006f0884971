"""`streamgauge selftest`."""

from __future__ import annotations

from typing import Annotated

import typer

from harness.cli.common_flags import Json, conclude
from harness.selftest import drive, report
from harness.terminal import console


def selftest(
    clean: Annotated[int, typer.Option(metavar="N", min=0, help="Number of runs without a bug. All must PASS.")] = 50,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the clean runs.")] = 1,
    as_json: Json = False,
) -> None:
    """Test the checker with planted bugs, sinks of known guarantee, and checkers that are wrong on purpose."""
    found = drive.selftest(clean, seed, console.note)
    conclude(as_json, report.as_object(found), report.lines(found), found.outcome)
