"""`streamgauge upgrade`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from harness.cli.common_flags import RUNS, Json
from harness.cli.flags import takes
from harness.cli.scenario_flags import EVENTS, SYSTEM, Scenario, usual
from harness.config import plan
from harness.drivers import one_run
from harness.engines import manifest as manifests
from harness.experiments import upgrade
from harness.faults import registry as faults
from harness.faults.job import MEANS, QUESTION, STATES, STOPS
from harness.judging.stored_run import StoredRun
from harness.model import UsageError
from harness.terminal import console, notification
from harness.util.suggest import nearest, wrong

SCENARIO = "calm"


@takes("sink", "rate", "duration", *EVENTS, *SYSTEM, usual=usual(SCENARIO))
def upgrade_job(
    scenario: Scenario = SCENARIO,
    *,
    old: Annotated[str, typer.Option("--from", metavar="JOB", help="Old job: an engine or a manifest.")],
    new: Annotated[str, typer.Option("--to", metavar="JOB", help="New job: an engine or a manifest.")],
    stop: Annotated[str, typer.Option(metavar="|".join(STOPS), help="How to stop the old job.")] = "kill",
    at: Annotated[
        str,
        typer.Option(
            metavar="WHEN",
            help="When to upgrade, in the syntax of a fault's moment. [default: in the middle of the load]",
        ),
    ] = "",
    asks: Annotated[
        str, typer.Option(metavar="QUESTION", help="Changed query of the new job, such as counts=click, by=ad.")
    ] = "",
    means: Annotated[
        str,
        typer.Option(metavar="|".join(MEANS), help="Expected counts after a changed query. [default: same]"),
    ] = "",
    state: Annotated[
        str,
        typer.Option(
            metavar="|".join(STATES),
            help="Initial state of the new job: a copy of the old one, or none. [default: copy]",
        ),
    ] = "",
    to_conf: Annotated[str, typer.Option(metavar="KEY=VALUE", help="Setting for the new job only.")] = "",
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for the run directory.")] = RUNS,
    as_json: Json = False,
    **flags: Any,
) -> None:
    """Replace a job by another one on a copy of its state during a run, and check that the counts stay right."""
    for flag, word, allowed in (("--stop", stop, STOPS), ("--means", means, MEANS), ("--state", state, STATES)):
        _refuse_another(flag, word, allowed)
    for asked in filter(None, asks.split(",")):
        _refuse_another(
            "--asks", asked.partition("=")[0].strip(), tuple(QUESTION), of="counts=click, by=ad or window=20s"
        )
    name, keys = plan.read_scenario(scenario)
    others = {"state": state, "conf": to_conf, "means": means, "asks": asks}
    calm, manifest = plan.resolve(name, keys, {**flags, "engine": old, "fault": "none"}, manifests.load)
    new_job, when = manifests.in_any_folder(new), at or faults.middle(manifest, calm.tape.load_ms)
    fault = upgrade.fault(new_job, stop, when, **others)
    spec, manifest = plan.resolve(name, keys, {**flags, "engine": old, "fault": fault}, manifests.load)
    one_run.refuse_the_impossible(
        spec, manifest, "Choose another --to, or change --asks, --means, --state or --to-conf."
    )
    lines = upgrade.difference(manifest, manifests.load(new, manifest.workload))
    result = one_run.answer(spec, manifest, out)
    stored = StoredRun.open(result.path)
    stored.store.write_bytes(upgrade.DIFFERENCE, "\n".join([*lines, ""]).encode())
    found = upgrade.judged(result.verdict, stored.faults, upgrade.changed(lines))
    notification.verdict(f"{found.outcome} {found.word.value}: {found.sentence}")
    if as_json:
        from reports.exports import machine

        own = msgspec.to_builtins(found)
        print(
            json.dumps({**machine.as_object("upgrade", result), "exit": found.outcome.exit_code, "upgrade": own}),
            flush=True,
        )
    else:
        from reports import screen

        console.show_result(screen.upgraded(old, new, found, result), found.outcome)
    one_run.draw(result.path)
    raise typer.Exit(found.outcome.exit_code)


def _refuse_another(flag: str, word: str, allowed: tuple[str, ...], of: str = "") -> None:
    """Refuse an unknown word here, so that the error names the typed flag and not the fault made from it."""
    if word and word not in allowed:
        raise UsageError(wrong(flag, word, of or f"one of {', '.join(allowed)}", nearest(word, allowed)))
