"""`streamgauge run --repeat`: several rounds, and one result for all of them."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

from harness.cli.common_flags import conclude
from harness.drivers import repeat
from harness.model import EngineManifest, RunSpec
from harness.terminal import console
from harness.util.texts import many
from reports import rounds as reports_rounds
from reports.exports import machine


def run(spec: RunSpec, engine_manifest: EngineManifest, rounds: int, out: Path, as_json: bool) -> NoReturn:
    done = repeat.drive(spec, engine_manifest, rounds, out)
    answer = done.answer
    objects = [machine.as_object("run", each) for each in done.results]
    head = f"{many(len(done.results), 'round')} of {spec.title} on {spec.engine}/{spec.sink}"
    shown = [console.table(rows, header) + "\n" for header, rows in reports_rounds.tables(answer)]
    told = [f"{answer.outcome.value}  {head}: {answer.sentence}\n", *shown, str(done.path)]
    conclude(as_json, reports_rounds.as_object(answer, done.path, objects), told, answer.outcome)
