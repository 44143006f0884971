"""`streamgauge run --repeat`: several rounds, and one result for all of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NoReturn

import typer

from harness.drivers import repeat
from harness.model import EngineManifest, RunSpec
from harness.terminal import console
from harness.util.texts import many
from reports import rounds as reports_rounds
from reports.exports import machine


def run(spec: RunSpec, engine_manifest: EngineManifest, rounds: int, out: Path, as_json: bool) -> NoReturn:
    done = repeat.drive(spec, engine_manifest, rounds, out)
    answer = done.answer
    if as_json:
        objects = [machine.as_object("run", each) for each in done.results]
        print(json.dumps(reports_rounds.as_object(answer, done.path, objects)))
    else:
        head = f"{many(len(done.results), 'round')} of {spec.title} on {spec.engine}/{spec.sink}"
        shown = [console.table(rows, header) + "\n" for header, rows in reports_rounds.tables(answer)]
        console.show_result(
            [f"{answer.outcome.value}  {head}: {answer.sentence}\n", *shown, str(done.path)], answer.outcome
        )
    raise typer.Exit(answer.outcome.exit_code)
