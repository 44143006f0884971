"""`streamgauge search`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from harness.cli.common_flags import EXPERIMENTS, Json, conclude
from harness.cli.flags import takes
from harness.cli.resume_flags import ExperimentsOut, Resume, refuse_beside_resume
from harness.cli.scenario_flags import EVENTS, SYSTEM, Scenario, usual
from harness.config import plan
from harness.drivers import one_run
from harness.drivers import search as drive_search
from harness.engines import manifest as manifests
from harness.experiments.searching import search as planner
from harness.terminal import console

SCENARIO = "calm"


@takes("engine", "sink", *EVENTS, "time", *SYSTEM, usual=usual(SCENARIO))
def search(
    context: typer.Context,
    scenario: Scenario = SCENARIO,
    *,
    quick: Annotated[
        bool, typer.Option("--quick", help="Start the engine once, not three times. The interval is wider.")
    ] = False,
    resume: Resume = None,
    out: ExperimentsOut = EXPERIMENTS,
    as_json: Json = False,
    **flags: Any,
) -> None:
    """Measure latency at rising rates, and find the highest sustainable rate as an interval."""
    if resume:
        refuse_beside_resume(context)
        experiment = drive_search.resume(resume)
        spec, engine_manifest = drive_search.resolved(experiment)
        one_run.refuse_the_impossible(spec, engine_manifest)
    else:
        name, keys = plan.read_scenario(scenario)
        spec, engine_manifest = plan.resolve(name, {**keys, **planner.WITHOUT}, flags, manifests.load)
        one_run.refuse_the_impossible(spec, engine_manifest)
        experiment = drive_search.begin(spec, engine_manifest, planner.QUICK if quick else planner.WHOLE, out)
    searched = drive_search.drive(experiment, spec, engine_manifest)
    from reports import curve  # slow to import, and already imported for the page

    found, shares = searched.found, searched.shares
    told = [f"{found.outcome.value}  {spec.engine}/{spec.sink}: {found.sentence}"]
    told += [f"{shares[0]:.0%} to {shares[1]:.0%} of the reference engine's rate on this machine"] if shares else []
    told += ["", console.table(curve.rows(searched), curve.COLUMNS), "", *curve.time_spent(searched)]
    told.append(str(experiment.path / "report.html"))
    conclude(as_json, curve.as_object(searched), told, found.outcome)
