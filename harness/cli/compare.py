"""`streamgauge compare`."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from harness.cli import shell_completion
from harness.cli.common_flags import EXPERIMENTS, Json
from harness.cli.flags import takes
from harness.cli.resume_flags import ExperimentsOut, Resume, refuse_beside_resume
from harness.cli.scenario_flags import EVENTS, SYSTEM
from harness.drivers import compare as drive_compare
from harness.experiments import compare as planner
from harness.model import UsageError
from harness.terminal import console
from reports import compared as reports_compared

WHOLE = planner.Settings()
USUAL = {"duration": f"{WHOLE.load_s}s", "repeat": str(WHOLE.rounds)}


@takes("rate", "duration", *EVENTS, *SYSTEM, "repeat", usual=USUAL)
def compare(
    context: typer.Context,
    engines: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ENGINE", help="Ids of engines, or paths of manifests.", autocompletion=shell_completion.engine
        ),
    ] = None,
    *,
    quick: Annotated[bool, typer.Option("--quick", help="One round.")] = False,
    searched: Annotated[bool, typer.Option("--search", help="Also the highest sustainable rate of each.")] = False,
    resume: Resume = None,
    out: ExperimentsOut = EXPERIMENTS,
    as_json: Json = False,
    **flags: Any,
) -> None:
    """Compare engines or versions: latency, cost, catch-up, recovery. Wrong counts get no figures."""
    if resume:
        refuse_beside_resume(context)
    elif not engines:
        raise UsageError("Name the engines to compare, such as `streamgauge compare spark reference`.")
    settings = planner.QUICK if quick else WHOLE
    place, asked = (
        drive_compare.resume(resume)
        if resume
        else drive_compare.begin(engines or [], settings, flags, out, searched=searched)
    )
    drive_compare.drive(place, asked)
    found = reports_compared.read(place).found
    if as_json:
        print(json.dumps(reports_compared.as_object(found, place.path)))
    else:
        table = console.table(reports_compared.rows(found), reports_compared.HEADER)
        told = [f"{found.outcome.value}  {found.sentence}", "", table, *reports_compared.at_rate(found), ""]
        told += [*reports_compared.searched(found), *reports_compared.endings(found)]
        console.show_result([*told, str(place.path / "report.html")], found.outcome)
    raise typer.Exit(found.outcome.exit_code)
