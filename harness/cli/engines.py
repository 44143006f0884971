"""`engines`, with `engines add` and `engines rm`."""

from __future__ import annotations

from typing import Annotated

import typer

from harness.cli import shell_completion
from harness.cli.common_flags import Json, answer, for_long
from harness.cli.panels import Commands
from harness.drivers import class_archives
from harness.engines import environments, fake, manifest, removal
from harness.engines.shipped import IDS, IN_VERSIONS, SHIPPED, workloads_of
from harness.install import archives
from harness.services import children
from harness.terminal import console
from reports import engines as reports_engines

app = typer.Typer(
    cls=Commands,
    help="List engines, or install or remove the files that one needs.",
    add_completion=False,
    rich_markup_mode=None,
)
Engine = Annotated[
    str,
    typer.Argument(
        metavar="ENGINE",
        help=f"{', '.join((*IDS, *IN_VERSIONS))}.",
        autocompletion=shell_completion.engine,
    ),
]


@app.callback(invoke_without_command=True)
def engines(context: typer.Context, as_json: Json = False) -> None:
    """List engines, what their sinks claim, and what is installed."""
    if context.invoked_subcommand:
        return
    shipped = (manifest.load(engine) for engine in SHIPPED)
    found = [fake.MANIFEST, *shipped, *environments.installed_versions()]
    told = [(each, workloads_of(each.id.partition("@")[0]), environments.missing(each)) for each in found]
    table = console.table([reports_engines.row(*each) for each in told], reports_engines.HEADER)
    answer(as_json, {"engines": [reports_engines.as_object(*each) for each in told]}, table)


@app.command("add")
@for_long("engines add")
def add(engine: Engine, as_json: Json = False) -> None:
    """Install an engine's dependencies without running it."""
    found = manifest.load(engine)
    with children.guard():
        environments.prepare(found, console.note)
    if found.archive:
        class_archives.of_engine(found)
    answer(as_json, {"command": "engines add", "engine": engine}, f"{engine} is ready")


@app.command("rm")
def rm(engine: Engine, as_json: Json = False) -> None:
    """Remove an engine's dependencies, including shared ones. The next use installs them again."""
    found = manifest.load(engine)
    installed = removal.remove(found, console.say)
    others = removal.sharing(found) if installed else []
    gone = installed + archives.remove(found.id, console.say)
    told = {"engine": engine, "removed": [str(path) for path in gone], "used_too_by": list(others)}
    lines = [f"removed {path}" for path in gone] or [f"nothing was installed for {engine}"]
    if others:
        lines.append(f"{' and '.join(others)} used it too: the next use installs it again")
    answer(as_json, {"command": "engines rm", **told}, "\n".join(lines))
