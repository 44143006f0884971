"""`streamgauge gate`."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Annotated, Any

import typer

from harness import completion, console
from harness.commands.planned import EVENTS
from harness.commands.resumed import ExperimentsOut
from harness.commands.shared import EXPERIMENTS, Json
from harness.experiments import drive_gate
from harness.experiments.drive_gate import Asked
from harness.experiments.folder import Folder
from harness.explain import wrong
from harness.flags import takes
from harness.model import Exit, UsageError
from reports import gated as reports_gated

USUAL = "5%"


@takes(*EVENTS, "conf", "archive")
def gate(
    *,
    base: Annotated[
        str,
        typer.Option(
            metavar="WHAT",
            help="What is: an engine, the path of a manifest or of a job beside one, or a commit.",
            autocompletion=completion.engine,
        ),
    ],
    head: Annotated[str, typer.Option(metavar="WHAT", help="What is to replace it.", autocompletion=completion.engine)],
    engine: Annotated[
        str, typer.Option(metavar="PATH", help="Of commits: where in their repository the manifest lies.")
    ] = "",
    threshold: Annotated[
        str | None, typer.Option(metavar="PERCENT", help=f"So much slower is too slow: {USUAL}.", show_default=False)
    ] = None,
    budget: Annotated[float, typer.Option(min=1, metavar="MINUTES", help="How long it may take.")] = 10,
    burst: Annotated[int, typer.Option(min=100, metavar="EVENTS", help="What is sent at once in a round.")] = 100_000,
    out: ExperimentsOut = EXPERIMENTS,
    as_json: Json = False,
    **flags: Any,
) -> None:
    """Is a change wrong, slower or costlier than what it replaces? Three answers: OK, REGRESSED, INCONCLUSIVE."""
    asked = Asked(base, head, _share(threshold or USUAL), budget * 60, flags, engine, burst)
    found, place = drive_gate.drive(asked, out)
    from reports.exports import gate as gate_exports

    gate_exports.save(reports_gated.read(Folder(place)))
    # A threshold that somebody typed is a mistake where nothing so small could be told; the usual one is not.
    code = Exit.USAGE if threshold and found.is_too_fine else found.outcome.exit_code
    if as_json:
        print(json.dumps(reports_gated.as_object(found, place, code)))
    else:
        told = [f"{found.answer.value}  {found.sentence}", ""]
        if found.effects:
            rows = [reports_gated.row(each) for each in found.effects]
            told += [console.table(rows, reports_gated.HEADER), "", f"{found.rounds} rounds a side", ""]
        console.show_result([*told, str(place)], found.outcome)
    raise typer.Exit(code)


def _share(text: str) -> float:
    """A share of 1, from what a person writes: 5%."""
    number = text.removesuffix("%")
    with suppress(ValueError):
        if 0.1 <= float(number) <= 100:
            return float(number) / 100
    raise UsageError(wrong("--threshold", text, "a percentage from 0.1% to 100%, such as 5%"))
