"""`streamgauge scale`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from harness.cli.common_flags import EXPERIMENTS, Json, conclude
from harness.cli.flags import takes
from harness.cli.resume_flags import ExperimentsOut, Resume, refuse_beside_resume
from harness.cli.scenario_flags import EVENTS, SYSTEM
from harness.drivers import scale as drive_scale
from harness.experiments import scale as planner
from harness.experiments.scale import Numbers, Unit
from harness.model import UsageError
from harness.terminal import console
from reports import scaled

USUAL = {"rate": f"{planner.WHOLE.catch_up_per_s:g}", "repeat": str(planner.WHOLE.rounds)}


@takes(
    "engine", "sink", "rate", *EVENTS, *(name for name in SYSTEM if name != "objective_p99_ms"), "repeat", usual=USUAL
)
def scale(
    context: typer.Context,
    *,
    cores: Annotated[
        str,
        typer.Option(
            metavar="N,N",
            help="Numbers of cores to measure, two or more; for a fit three or more. A part of a core is a CPU quota.",
            show_default=False,
        ),
    ] = "",
    executors: Annotated[
        str,
        typer.Option(
            metavar="N,N",
            help="Instead of --cores: numbers of executors of a cluster, with a core each (Spark, flink-standalone).",
            show_default=False,
        ),
    ] = "",
    wanted: Annotated[
        str,
        typer.Option(
            "--for",
            metavar="N,N",
            help="Numbers of cores to predict, at most twice the largest of --cores.",
            show_default=False,
        ),
    ] = "",
    quick: Annotated[
        bool, typer.Option("--quick", help="Run one round instead of --repeat rounds. Nothing has an interval.")
    ] = False,
    resume: Resume = None,
    out: ExperimentsOut = EXPERIMENTS,
    as_json: Json = False,
    **flags: Any,
) -> None:
    """Measure how the rate and the cost of an engine grow with its cores or executors, and from where on it beats one
    process."""
    if resume:
        refuse_beside_resume(context)
        experiment, asked = drive_scale.resume(resume)
    else:
        settings = planner.QUICK if quick else planner.WHOLE
        experiment, asked = drive_scale.begin(_numbers(cores, executors, wanted), settings, flags, out)
    found = drive_scale.drive(experiment, asked)
    table = console.table(scaled.rows(found), scaled.header(found))
    told = [f"{found.outcome.value}  {found.sentence}", "", table, "", *found.notes()]
    told.append(str(experiment.path / "report.html"))
    conclude(as_json, scaled.as_object(found, experiment.path), told, found.outcome)


def _numbers(cores: str, executors: str, wanted: str) -> Numbers:
    if cores and executors:
        raise UsageError("--cores and --executors are two ways to give an engine more. Give one of them.")
    if not cores and not executors:
        raise UsageError(
            "Give the numbers of cores to measure, such as `streamgauge scale --engine spark --cores 1,2`."
        )
    unit: Unit = "executor" if executors else "core"
    predicted = planner.read_whole(wanted, "--for", unit) if wanted else ()
    if executors:
        return Numbers(planner.read_whole(executors, "--executors", unit), predicted, unit)
    return Numbers(planner.read_cores(cores, "--cores"), predicted, unit)
