"""`streamgauge run`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from harness.cli.common_flags import RUNS, Json, answer
from harness.cli.flags import takes
from harness.cli.scenario_flags import EVENTS, SYSTEM, Scenario
from harness.cli.show_verdict import show
from harness.config import plan
from harness.drivers import class_archives, one_run
from harness.engines import manifest as manifests
from harness.model import DEFAULT_SCENARIO, RunSpec
from harness.terminal import console


@takes(
    "engine",
    "sink",
    "rate",
    "duration",
    "warm_up",
    "backlog",
    "history",
    "seam",
    "backfill",
    "backfill_kill",
    *EVENTS,
    "time",
    "fault",
    "states",
    "cores",
    *SYSTEM,
    "repeat",
    "checksum",
    "workers",
    "bind",
    "recount",
)
def run(
    scenario: Scenario = DEFAULT_SCENARIO,
    listing: Annotated[bool, typer.Option("--list", help="List the shipped scenarios, and exit.")] = False,
    *,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for run directories.")] = RUNS,
    as_json: Json = False,
    **flags: Any,
) -> None:
    """Run an engine once with disordered events and a fault, and judge every count to the single event."""
    if listing:
        _list_scenarios(as_json)
        return
    name, keys = plan.read_scenario(scenario)
    spec, engine_manifest = plan.resolve(name, keys, flags, manifests.load)
    one_run.refuse_the_impossible(spec, engine_manifest)
    _foretell(spec)
    rounds = plan.rounds_of(name, keys, flags)
    one_run.refuse_without_room(spec, engine_manifest, out, rounds)
    if rounds > 1:
        from harness.cli import run_repeat as several

        several.run(spec, engine_manifest, rounds, out, as_json)
    result = one_run.answer(spec, engine_manifest, out)
    show("run", result, as_json)
    one_run.draw(result.path)
    class_archives.after(spec, engine_manifest)
    raise typer.Exit(result.verdict.outcome.exit_code)


def _foretell(spec: RunSpec) -> None:
    """Show how long a run with a warm-up takes and why, since it takes minutes."""
    if spec.tape.warmed_ms:
        from harness.measuring import steady

        times_ms = (spec.tape.warmed_ms, spec.tape.load_ms, spec.window_ms)
        console.note(steady.foretold(*(time_ms / 1000 for time_ms in times_ms)))


def _list_scenarios(as_json: bool) -> None:
    from harness.cli import scenario_list

    found = plan.scenario_groups()
    rows = scenario_list.rows(found)
    told = {"scenarios": [{"name": name, "group": group, "what": what} for group, name, what in rows]}
    answer(as_json, told, scenario_list.shown(found))
