"""`workload`, with `workload new` and `workload check`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from harness.cli.common_flags import Json, answer
from harness.cli.panels import Commands
from harness.model import UsageError
from harness.terminal import console
from workloads.declared import declaration
from workloads.shipped import WORKLOADS, folder_of, shipped

app = typer.Typer(
    cls=Commands,
    help="List workloads, or write and check one of your own.",
    add_completion=False,
    rich_markup_mode=None,
)
New = Annotated[str, typer.Argument(metavar="DIR", help="Folder for the workload.toml.")]
Declared = Annotated[
    Path, typer.Argument(metavar="DIR", help="Folder of a workload.toml, or the id of a shipped workload.")
]


@app.callback(invoke_without_command=True)
def workload(context: typer.Context, as_json: Json = False) -> None:
    """List workloads, or write and check one of your own."""
    if context.invoked_subcommand:
        return
    found = {name: shipped(name).asks for name in WORKLOADS}
    told = {"workloads": [{"workload": name, "asks": asks} for name, asks in found.items()]}
    answer(as_json, told, console.table([[*each] for each in found.items()], ["workload", "asks"]))


@app.command("new")
def new(place: New, as_json: Json = False) -> None:
    """Write a commented workload.toml that already passes `check` into a folder that has none."""
    if not place.strip():  # an empty path would be the current folder
        raise UsageError("DIR is empty. Name the folder to create, such as `payments`, or `.` for this one.")
    path = declaration.write_new(Path(place))
    next_step = f"`streamgauge workload check {path.parent}` shows its events and expected rows"
    answer(as_json, {"command": "workload new", "workload": str(path)}, f"wrote {path}\n{next_step}")


@app.command("check")
def check(place: Declared, as_json: Json = False) -> None:
    """Show sample events of a declared workload, their expected rows, and what can't be judged and why."""
    from workloads.declared import checked

    is_shipped = str(place) in WORKLOADS
    if is_shipped and not shipped(str(place)).declaration:
        raise UsageError(f"{place} is written in Python. `check` only reads a {declaration.FILE}.")
    place = folder_of(str(place)) if is_shipped else place
    _, found = checked.load(place, shipped=is_shipped)
    answer(as_json, {"command": "workload check", **msgspec.to_builtins(found)}, "\n".join(checked.lines(found)))
