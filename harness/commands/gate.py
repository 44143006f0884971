"""`streamgauge gate`."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Annotated, Any, Never

import typer

from harness import completion, console
from harness.commands.planned import EVENTS
from harness.commands.resumed import ExperimentsOut, Resume, refuse_beside_resume
from harness.commands.shared import EXPERIMENTS, Json
from harness.experiments import drive_calibrate, drive_gate, history
from harness.experiments.drive_gate import Asked
from harness.experiments.folder import Folder
from harness.explain import wrong
from harness.flags import takes
from harness.model import Exit, UsageError
from reports import calibrated as reports_calibrated
from reports import gated as reports_gated

USUAL = "5%"


@takes(*EVENTS, "fault", "conf", "archive")
def gate(
    context: typer.Context,
    *,
    base: Annotated[
        str,
        typer.Option(
            metavar="WHAT",
            help="What is: an engine, the path of a manifest or of a job beside one, or a commit.",
            autocompletion=completion.engine,
            show_default=False,
        ),
    ] = "",
    head: Annotated[
        str,
        typer.Option(
            metavar="WHAT", help="What is to replace it.", autocompletion=completion.engine, show_default=False
        ),
    ] = "",
    engine: Annotated[
        str,
        typer.Option(
            metavar="PATH", help="Of commits: where in their repository the manifest lies.", show_default=False
        ),
    ] = "",
    threshold: Annotated[
        str | None, typer.Option(metavar="PERCENT", help=f"So much slower is too slow: {USUAL}.", show_default=False)
    ] = None,
    budget: Annotated[float, typer.Option(min=1, metavar="MINUTES", help="How long it may take.")] = 10,
    burst: Annotated[
        int | None,
        typer.Option(min=100, metavar="EVENTS", help="What is sent at once: what takes about 2 s.", show_default=False),
    ] = None,
    calibrate: Annotated[
        bool,
        typer.Option("--calibrate", help="How often would it find a slowdown of --base, and one that is not there?"),
    ] = False,
    history_at: Annotated[
        str,
        typer.Option(
            "--history",
            metavar="PATH",
            help="A file of yours that gets one more line, or a folder (FOLDER/) that gets one more file: for `trend`.",
            show_default=False,
        ),
    ] = "",
    resume: Resume = None,
    out: ExperimentsOut = EXPERIMENTS,
    as_json: Json = False,
    **flags: Any,
) -> None:
    """Is a change wrong, slower or costlier than what it replaces? Three answers: OK, REGRESSED, INCONCLUSIVE."""
    if calibrate:
        if resume:
            refuse_beside_resume(context, "calibrate")
        elif not base:
            raise UsageError("--base is missing: say of what, as in `streamgauge gate --calibrate --base spark`.")
        begun = drive_calibrate.Asked(base, engine, flags, budget * 60, drive_gate.settings_of(burst or 0, budget * 60))
        _calibrate(drive_calibrate.resume(resume) if resume else drive_calibrate.begin(begun, out), as_json=as_json)
    if resume:
        raise UsageError("Only --calibrate takes --resume: a gate compares what ran side by side, and begins anew.")
    for name, given in (("--base", base), ("--head", head)):
        if not given:
            raise UsageError(
                f"{name} is missing: a gate compares two, as in `streamgauge gate --base main --head HEAD`."
            )
    if history_at:
        history.refuse_unusable(history_at)
    asked = Asked(base, head, _share(threshold or USUAL), budget * 60, flags, engine, burst or 0)
    found, place = drive_gate.drive(asked, out)
    if history_at:
        from reports.exports import history as history_export

        line = history_export.of_gate(reports_gated.read(Folder(place)))
        console.say(f"added to {history.add(history_at, line)}")
    # A threshold that somebody typed is a mistake where nothing so small could be told; the usual one is not.
    code = Exit.USAGE if threshold and found.is_too_fine else found.outcome.exit_code
    if as_json:
        print(json.dumps(reports_gated.as_object(found, place, code)))
    else:
        rows = [reports_gated.row(each) for each in found.effects]
        table = [console.table(rows, reports_gated.HEADER), ""] if rows else []
        head = f"{found.answer.value}  {found.sentence}"
        console.show_result([head, "", *table, *reports_gated.notes(found), "", str(place)], found.outcome)
    drive_gate.draw(Folder(place))
    raise typer.Exit(code)


def _calibrate(place: Folder, *, as_json: bool) -> Never:
    found = drive_calibrate.drive(place)
    if as_json:
        print(json.dumps(reports_calibrated.as_object(found, place.path, Exit.PASS)))
    else:
        table = console.table(list(reports_calibrated.rows(found)), reports_calibrated.HEADER)
        print(f"{table}\n\n{reports_calibrated.summary(found)}\n\n{place.path}")
    raise typer.Exit(Exit.PASS)


def _share(text: str) -> float:
    """A share of 1, from what a person writes: 5%."""
    number = text.removesuffix("%")
    with suppress(ValueError):
        if 0.1 <= float(number) <= 100:
            return float(number) / 100
    raise UsageError(wrong("--threshold", text, "a percentage from 0.1% to 100%, such as 5%"))
