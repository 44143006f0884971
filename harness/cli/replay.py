"""`streamgauge replay`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from harness.cli.common_flags import RUNS, Json, Run
from harness.drivers import replay as replays
from harness.terminal import console


def replay(
    run: Run,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for the new run directory.")] = RUNS,
    as_json: Json = False,
) -> None:
    """Run the plan of a stored run again, and compare the outcomes."""
    found = replays.replay(run, out)
    if as_json:
        told = {"command": "replay", "same": found.same if found.known else None, "exit": found.exit_code}
        print(json.dumps({**told, "sentence": found.sentence, **msgspec.to_builtins(found)}))
    else:
        rows = [[line.what, line.before, line.again, "" if line.same else "differs"] for line in found.lines]
        head = f"{found.outcome.value}  {found.sentence}"
        console.show_result(
            [head, "", console.table(rows, ("", "before", "again", "")), "", found.again], found.outcome
        )
    raise typer.Exit(found.exit_code)
