"""`workload`, with `workload new` and `workload check`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from harness import console
from harness.commands.shared import Json
from harness.model import UsageError
from harness.panels import Commands
from workloads.declared import declaration
from workloads.shipped import WORKLOADS, folder_of, shipped

app = typer.Typer(
    cls=Commands,
    help="Workloads: what an engine is asked, and a question of your own.",
    add_completion=False,
    rich_markup_mode=None,
)
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a workload.toml.")]
Declared = Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a workload.toml, or a shipped id.")]


@app.callback(invoke_without_command=True)
def workload(context: typer.Context, as_json: Json = False) -> None:
    """Workloads: what an engine is asked, and a question of your own."""
    if context.invoked_subcommand:
        return
    found = {name: shipped(name).asks for name in WORKLOADS}
    if as_json:
        print(json.dumps({"workloads": [{"workload": name, "asks": asks} for name, asks in found.items()]}))
    else:
        print(console.table([[name, asks] for name, asks in found.items()], ["workload", "asks"]))


@app.command("new")
def new(place: Folder, as_json: Json = False) -> None:
    """Write a workload.toml with comments that can be checked at once, into a folder that has none."""
    path = declaration.write_new(place)
    print(json.dumps({"command": "workload new", "workload": str(path)}) if as_json else _next(path))


@app.command("check")
def check(place: Declared, as_json: Json = False) -> None:
    """Show sample events of a declared workload, the rows expected of them, and what can't be judged and why."""
    from workloads.declared import checked

    is_shipped = str(place) in WORKLOADS
    if is_shipped and not shipped(str(place)).declaration:
        raise UsageError(f"{place} is written in Python, and `check` shows what a {declaration.FILE} says.")
    place = folder_of(str(place)) if is_shipped else place
    _, found = checked.load(place, shipped=is_shipped)
    if as_json:
        print(json.dumps({"command": "workload check", **msgspec.to_builtins(found)}))
    else:
        print("\n".join(checked.lines(found)))


def _next(path: Path) -> str:
    return f"wrote {path}\n`streamgauge workload check {path.parent}` shows what it says"
