"""`streamgauge replay`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from harness.cli.common_flags import RUNS, Json, Run, conclude
from harness.drivers import replay as replays
from harness.terminal import console


def replay(
    run: Run,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for the new run directory.")] = RUNS,
    as_json: Json = False,
) -> None:
    """Run the plan of a stored run again, and compare the outcomes."""
    found = replays.replay(run, out)
    told = {"command": "replay", "same": found.same if found.known else None, "exit": found.outcome.exit_code}
    told |= {"sentence": found.sentence, **msgspec.to_builtins(found)}
    rows = [[line.what, line.before, line.again, "" if line.same else "differs"] for line in found.lines]
    table = console.table(rows, ("", "before", "again", ""))
    conclude(as_json, told, [f"{found.outcome.value}  {found.sentence}", "", table, "", found.again], found.outcome)
