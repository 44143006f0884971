"""`streamgauge run`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from harness import console, plan, steady
from harness.commands.judged import show
from harness.commands.planned import EVENTS, SYSTEM, Scenario
from harness.commands.shared import RUNS, Json
from harness.experiments import drive_repeat, one_run, training
from harness.flags import takes
from harness.model import RunSpec
from reports import rounds as reports_rounds
from reports.exports import machine


@takes("engine", "sink", "rate", "duration", "warm_up", *EVENTS, "fault", *SYSTEM, "repeat", "checksum", "web")
def run(
    scenario: Scenario = plan.DEFAULT_SCENARIO,
    listing: Annotated[bool, typer.Option("--list", help="List the shipped scenarios.")] = False,
    *,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder in which run directories are made.")] = RUNS,
    as_json: Json = False,
    **flags: Any,
) -> None:
    """One run: disorder, a fault, a verdict to the single event."""
    if listing:
        _list_scenarios(as_json)
        return
    name, keys = plan.read_scenario(scenario)
    spec, engine_manifest = plan.resolve(name, keys, flags, one_run.find_manifest)
    one_run.refuse_the_impossible(spec, engine_manifest)
    _foretell(spec)
    rounds = plan.rounds_of(name, keys, flags)
    one_run.refuse_without_room(spec, engine_manifest, out, rounds)
    if rounds > 1:
        _answer_of_rounds(spec, drive_repeat.drive(spec, engine_manifest, rounds, out), as_json)
    else:
        result = one_run.answer(spec, engine_manifest, out)
        show("run", result, as_json)
        one_run.draw(result.path)
        training.after(spec, engine_manifest)
        raise typer.Exit(result.verdict.outcome.exit_code)


def _foretell(spec: RunSpec) -> None:
    """A run that is warmed up takes minutes: its user knows before, and what for."""
    if spec.tape.warm_up:
        times_ms = (spec.tape.warm_up_ms, spec.tape.load_ms, spec.window_ms)
        console.say(steady.foretold(*(time_ms / 1000 for time_ms in times_ms)))


def _answer_of_rounds(spec: RunSpec, done: drive_repeat.Done, as_json: bool) -> NoReturn:
    answer = done.answer
    if as_json:
        objects = [machine.as_object("run", each) for each in done.results]
        print(json.dumps(reports_rounds.as_object(answer, done.path, objects)))
    else:
        head = f"{len(done.results)} rounds of {spec.scenario} on {spec.engine}/{spec.sink}"
        shown = [console.table(rows, header) + "\n" for header, rows in reports_rounds.tables(answer)]
        console.show_result(
            [f"{answer.outcome.value}  {head}: {answer.sentence}\n", *shown, str(done.path)], answer.outcome
        )
    raise typer.Exit(answer.outcome.exit_code)


def _list_scenarios(as_json: bool) -> None:
    found = plan.scenarios()
    if as_json:
        print(json.dumps({"scenarios": [{"name": name, "what": what} for name, what in found.items()]}))
    else:
        print(console.table([*found.items()], ("name", "what")))
