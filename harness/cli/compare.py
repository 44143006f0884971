"""`streamgauge compare`."""

from __future__ import annotations

from typing import Annotated, Any, Never

import typer

from harness.cli import shell_completion
from harness.cli.common_flags import EXPERIMENTS, Json, a_number, conclude
from harness.cli.flags import takes
from harness.cli.resume_flags import ExperimentsOut, Resume, refuse_beside, refuse_beside_resume
from harness.cli.scenario_flags import EVENTS, SYSTEM
from harness.drivers import compare as drive_compare
from harness.drivers import pairs
from harness.experiments import compare as planner
from harness.experiments.folder import Folder
from harness.experiments.pairing import KIND, Which
from harness.model import UsageError
from harness.terminal import console
from reports import compared as reports_compared
from reports import paired as reports_paired

WHOLE = planner.Settings()
PAIR_BUDGET_MIN = 10
OF_PAIRS = ("budget",)
NOT_OF_PAIRS = (
    *("quick", "searched", "rate", "duration", "repeat"),
    *(name for name in SYSTEM if name not in ("conf", "archive")),
)
USUAL = {"duration": f"{WHOLE.load_s}s", "repeat": str(WHOLE.rounds)}


@takes("rate", "duration", *EVENTS, *SYSTEM, "repeat", usual=USUAL)
def compare(
    context: typer.Context,
    engines: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ENGINE", help="Two or more engine ids or manifest paths.", autocompletion=shell_completion.engine
        ),
    ] = None,
    *,
    quick: Annotated[bool, typer.Option("--quick", help="Run one round instead of --repeat rounds.")] = False,
    searched: Annotated[
        bool, typer.Option("--search", help="Also search the highest sustainable rate of each engine.")
    ] = False,
    which: Annotated[
        Which | None,
        typer.Option(
            "--pairs",
            metavar="all|first",
            help="Compare only CPU cost, two engines at a time on the same cores: all pairs, or each engine with "
            "the first.",
            show_default=False,
        ),
    ] = None,
    budget: Annotated[
        float,
        typer.Option(
            min=1, max=1440, callback=a_number, metavar="MINUTES", help="Time limit of each pair; with --pairs."
        ),
    ] = PAIR_BUDGET_MIN,
    resume: Resume = None,
    out: ExperimentsOut = EXPERIMENTS,
    as_json: Json = False,
    **flags: Any,
) -> None:
    """Compare latency, cost, catch-up and recovery of engines or versions. Engines that count wrong get no figures."""
    if resume:
        refuse_beside_resume(context)
        if Folder.open(resume.absolute(), "compare", KIND).kind == KIND:
            _pairs(pairs.resume(resume), as_json=as_json)
    elif not engines:
        raise UsageError("Name the engines to compare, such as `streamgauge compare spark reference`.")
    refuse_beside(context, () if which else OF_PAIRS, "without --pairs")
    if which:
        refuse_beside(context, NOT_OF_PAIRS, "with --pairs, which measures only the CPU cost, on servers of its own")
        _pairs(pairs.begin(engines or [], which, budget * 60, flags, out), as_json=as_json)
    settings = planner.QUICK if quick else WHOLE
    experiment, asked = (
        drive_compare.resume(resume)
        if resume
        else drive_compare.begin(engines or [], settings, flags, out, searched=searched)
    )
    drive_compare.drive(experiment, asked)
    found = reports_compared.read(experiment).found
    table = console.table(reports_compared.rows(found), reports_compared.HEADER)
    told = [f"{found.outcome.value}  {found.sentence}", "", table, *reports_compared.at_rate(found), ""]
    told += [*reports_compared.searched(found), *reports_compared.endings(found), str(experiment.path / "report.html")]
    conclude(as_json, reports_compared.as_object(found, experiment.path), told, found.outcome)


def _pairs(experiment: Folder, *, as_json: bool) -> Never:
    found = pairs.drive(experiment)
    table = console.table(reports_paired.rows(found), reports_paired.HEADER)
    told = [f"{found.outcome.value}  {found.sentence}", "", table, "", *reports_paired.notes(found)]
    told.append(str(experiment.path / "report.html"))
    conclude(as_json, reports_paired.as_object(found, experiment.path), told, found.outcome)
