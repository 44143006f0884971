"""`streamgauge search`."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from harness import console, plan
from harness.commands.planned import EVENTS, SYSTEM, Scenario
from harness.commands.resumed import ExperimentsOut, Resume, refuse_beside_resume
from harness.commands.shared import EXPERIMENTS, Json
from harness.engines import manifest as manifests
from harness.experiments import drive_search, one_run
from harness.experiments import search as planner
from harness.flags import takes
from reports import trials as reports_trials


@takes("engine", "sink", *EVENTS, "time", *SYSTEM)
def search(
    context: typer.Context,
    scenario: Scenario = "calm",
    *,
    quick: Annotated[bool, typer.Option("--quick", help="Shorter trials, fewer rungs, a wider interval.")] = False,
    resume: Resume = None,
    out: ExperimentsOut = EXPERIMENTS,
    as_json: Json = False,
    **flags: Any,
) -> None:
    """Find the highest sustainable rate, as an interval, and the latency below it."""
    if resume:
        refuse_beside_resume(context)
        place = drive_search.resume(resume)
        spec = drive_search.spec_of(place)
        engine_manifest = manifests.load(spec.engine, spec.workload)
        one_run.refuse_the_impossible(spec, engine_manifest)
    else:
        name, keys = plan.read_scenario(scenario)
        spec, engine_manifest = plan.resolve(name, {**keys, "fault": "none", "checksum": False}, flags, manifests.load)
        one_run.refuse_the_impossible(spec, engine_manifest)
        place = drive_search.begin(spec, planner.QUICK if quick else planner.Settings(), out)
    trials = drive_search.drive(place, spec, engine_manifest)
    found, objective_ms = planner.answer(trials), drive_search.settings_of(place).objective_p99_ms
    if as_json:
        print(json.dumps(reports_trials.as_object(place.path, trials, found)))
    else:
        print(f"{spec.engine}/{spec.sink}: {found.sentence}, objective p99 <= {objective_ms:,.0f} ms")
        print(console.table(reports_trials.rows(trials), reports_trials.COLUMNS))
        print(place.path)
    raise typer.Exit(found.outcome.exit_code)
