"""`streamgauge chaos`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from harness.cli import shell_completion
from harness.cli.common_flags import EXPERIMENTS, Json, answer, conclude
from harness.cli.flags import takes
from harness.cli.resume_flags import ExperimentsOut, Resume, refuse_beside_resume
from harness.cli.scenario_flags import EVENTS, SYSTEM
from harness.drivers import chaos as drive_chaos
from harness.experiments import chaos as planner
from harness.faults import evidence
from harness.faults import registry as faults
from harness.terminal import console
from reports import card as reports_card
from reports import faults as reports_faults


def _as_often_as_needed(metavar: str, what: str, names: shell_completion.Completer) -> Any:
    return typer.Option(metavar=metavar, help=f"{what}; may be repeated.", autocompletion=names)


# Keys that a tier sets for all of its runs.
OF_THE_TIER = ("rate", "duration", "disorder", "watermark", "cluster")


@takes("rate", "duration", *EVENTS, *SYSTEM, "repeat", usual=dict.fromkeys(OF_THE_TIER, "the tier's"))
def chaos(
    context: typer.Context,
    *,
    tier: Annotated[
        str,
        typer.Option(
            metavar="TIER",
            help=f"Set of cases: {', '.join(planner.ORDER)}, or the path of a .toml file.",
            autocompletion=shell_completion.tier,
        ),
    ] = planner.ORDER[0],
    fault: Annotated[
        list[str] | None,
        _as_often_as_needed("PLAN", "Run this fault or plan instead of the tier's", shell_completion.OF_KEY["fault"]),
    ] = None,
    engine: Annotated[
        list[str] | None, _as_often_as_needed("ENGINE", "Run only this engine of the tier", shell_completion.engine)
    ] = None,
    sink: Annotated[
        list[str] | None, _as_often_as_needed("NAME", "Run only this sink", shell_completion.OF_KEY["sink"])
    ] = None,
    listing: Annotated[
        bool, typer.Option("--list", help="List all faults with the evidence of each, and exit.")
    ] = False,
    jobs: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Number of parallel runs. [default: one per core if memory allows, at most 4]"
        ),
    ] = None,
    resume: Resume = None,
    out: ExperimentsOut = EXPERIMENTS,
    as_json: Json = False,
    **flags: Any,
) -> None:
    """Run faults x engines x sinks, and show which delivery guarantee each sink keeps."""
    if listing:
        _list_faults(as_json)
        return
    if resume:
        refuse_beside_resume(context, "jobs")
    asked = drive_chaos.ChaosSelection(tuple(engine or ()), tuple(sink or ()), tuple(fault or ()))
    experiment, settings = (
        drive_chaos.resume(resume, jobs)
        if resume
        else drive_chaos.begin(planner.read_tier(tier), asked, flags, out, jobs)
    )
    card = drive_chaos.drive(experiment, settings)
    told = [f"{card.outcome.value}  {card.sentence}"]
    for heading, rows in reports_card.tables(card):
        told += ["", heading, console.table(rows, reports_card.HEADER)]
    if came := reports_card.changes(card):
        told += ["", console.table(came, reports_card.CHANGES)]
    told += ["", *reports_card.endings(card), str(experiment.path)]
    conclude(as_json, reports_card.as_object(card, experiment.path), told, card.outcome)


def _list_faults(as_json: bool) -> None:
    kinds, seen = faults.FAULTS, evidence.by_kind()
    table = console.table(reports_faults.rows(kinds, seen), reports_faults.HEADER)
    answer(as_json, reports_faults.as_object(kinds, seen), f"{table}\n{reports_faults.summary(kinds, seen)}")
