"""`streamgauge gate`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Never

import typer

from harness.cli import shell_completion
from harness.cli.common_flags import EXPERIMENTS, Json, a_number
from harness.cli.flags import takes
from harness.cli.resume_flags import ExperimentsOut, Resume, refuse_beside_resume
from harness.cli.scenario_flags import EVENTS
from harness.drivers import gate as drive_gate
from harness.drivers import gate_calibration
from harness.drivers.gate import GateRequest
from harness.experiments.folder import Folder
from harness.experiments.gating import baseline, history
from harness.experiments.gating.baseline import REFERENCE, is_baseline
from harness.experiments.gating.gate import ANY
from harness.model import Exit, Outcome, UsageError
from harness.terminal import console, notification
from harness.util.suggest import wrong
from reports import calibrated as reports_calibrated
from reports import gated as reports_gated
from reports.gated import Record

USUAL, USUAL_STORED = "5%", "10%"


@takes(*EVENTS, "fault", "conf", "archive", usual={"disorder": "none", "fault": "none"})
def gate(
    context: typer.Context,
    base: Annotated[
        str,
        typer.Option(
            metavar="WHAT",
            help="Baseline: an engine, a manifest, a job next to one, a commit or a baseline.json.",
            autocompletion=shell_completion.engine,
            show_default=False,
        ),
    ] = "",
    head: Annotated[
        str,
        typer.Option(
            metavar="WHAT",
            help="Candidate: an engine, a manifest, a job or a commit.",
            autocompletion=shell_completion.engine,
            show_default=False,
        ),
    ] = "",
    engine: Annotated[
        str,
        typer.Option(
            metavar="PATH",
            help="Path of the manifest in the repository, if --base or --head is a commit.",
            show_default=False,
        ),
    ] = "",
    *,
    threshold: Annotated[
        str | None,
        typer.Option(
            metavar="PERCENT",
            help=f"Fail if slower by more than this. [default: {USUAL}; {USUAL_STORED} with a baseline.json]",
            show_default=False,
        ),
    ] = None,
    budget: Annotated[
        float, typer.Option(min=1, max=1440, callback=a_number, metavar="MINUTES", help="Time limit of the whole gate.")
    ] = 10,
    burst: Annotated[
        int | None,
        typer.Option(
            min=100, metavar="EVENTS", help="Events per burst. [default: about 3 s of work]", show_default=False
        ),
    ] = None,
    calibrate: Annotated[
        bool,
        typer.Option(
            "--calibrate",
            help="Measure how often the gate detects a real slowdown of --base, and how often it reports a false one.",
        ),
    ] = False,
    saves: Annotated[
        str,
        typer.Option(
            "--save-baseline",
            metavar="FILE",
            help="Without --base: save the cost of --head relative to the reference engine, for a later --base FILE.",
            show_default=False,
        ),
    ] = "",
    history_at: Annotated[
        str,
        typer.Option(
            "--history",
            metavar="PATH",
            help="Append the result to this file, or add a file to this folder (FOLDER/). `trend` reads it.",
            show_default=False,
        ),
    ] = "",
    resume: Resume = None,
    out: ExperimentsOut = EXPERIMENTS,
    as_json: Json = False,
    **flags: Any,
) -> None:
    """Test if a change counts wrong or costs more than its baseline: OK, IMPROVED, REGRESSED or INCONCLUSIVE."""
    if calibrate:
        if resume:
            refuse_beside_resume(context, "calibrate")
        elif not base:
            raise UsageError("--calibrate needs --base, as in `streamgauge gate --calibrate --base spark`.")
        begun = gate_calibration.CalibrationRequest(
            base, engine, flags, budget * 60, drive_gate.settings_of(burst or 0, budget * 60)
        )
        _calibrate(gate_calibration.resume(resume) if resume else gate_calibration.begin(begun, out), as_json=as_json)
    if resume:
        raise UsageError(
            "--resume works only with --calibrate. A gate can't be resumed, because it compares engines that run at "
            "the "
            "same time. Start it again without --resume."
        )
    if saves:
        _refuse_beside_saving(saves, base, threshold)
        base = REFERENCE
    _refuse_missing(base, head)
    if history_at:
        history.refuse_unusable(history_at)
    usual = USUAL_STORED if is_baseline(base) else USUAL
    too_slow = ANY if saves else _share(threshold or usual)
    found, path = drive_gate.drive(
        GateRequest(base, head, too_slow, budget * 60, flags, engine, burst or 0, saves), out
    )
    for said in _kept(reports_gated.read(Folder(path)), saves, history_at):
        console.note(said)
    # A threshold that was typed is a usage error if the measurement can't resolve it; the default one is not.
    code = Exit.USAGE if threshold and found.is_too_fine else found.outcome.exit_code
    head = f"{found.answer.value}  {found.sentence}"
    notification.verdict(head)
    if as_json:
        print(json.dumps(reports_gated.as_object(found, path, code)))
    else:
        rows = [reports_gated.row(each) for each in found.effects]
        table = [console.table(rows, reports_gated.HEADER), ""] if rows else []
        below = [*reports_gated.advice(found, budget * 60), *reports_gated.notes(found)]
        console.show_result([head, "", *table, *below, "", str(path)], found.outcome)
    drive_gate.draw(Folder(path))
    raise typer.Exit(code)


def _refuse_beside_saving(saves: str, base: str, threshold: str | None) -> None:
    for name, given in (("--base", base), ("--threshold", threshold)):
        if given:
            raise UsageError(
                f"{name} can't be given beside --save-baseline, which only measures --head by the "
                "reference engine. Leave it out."
            )
    if not is_baseline(saves):
        raise UsageError(wrong("--save-baseline", saves, "a name that ends with .json, so that --base accepts it,"))
    history.refuse_unwritable("--save-baseline", saves)


def _refuse_missing(base: str, head: str) -> None:
    for name, given in (("--base", base), ("--head", head)):
        if not given:
            raise UsageError(
                f"{name} is missing. A gate compares two candidates, as in "
                "`streamgauge gate --base main --head HEAD --engine PATH`."
            )


def _kept(record: Record, saves: str, history_at: str) -> Iterator[str]:
    """Save the baseline and the history line if requested, and yield a sentence for each."""
    from reports.exports import history as history_export

    line = history_export.of_gate(record)
    if saves and record.found.outcome is Outcome.PASS:
        baseline.save(Path(saves), line)
        yield f"{saves} is measured: `streamgauge gate --base {saves} --head HEAD --engine PATH` compares later commits"
    elif saves:
        yield f"{saves} is left as it was"
    if history_at:
        yield f"added to {history.add(history_at, line)}"


def _calibrate(experiment: Folder, *, as_json: bool) -> Never:
    found = gate_calibration.drive(experiment)
    if as_json:
        print(json.dumps(reports_calibrated.as_object(found, experiment.path, Exit.PASS)))
    else:
        table = console.table(list(reports_calibrated.rows(found)), reports_calibrated.HEADER)
        print(f"{table}\n\n{reports_calibrated.summary(found)}\n\n{experiment.path}")
    raise typer.Exit(Exit.PASS)


def _share(text: str) -> float:
    """Parse a percentage such as 5% into a share of 1."""
    number = text.removesuffix("%")
    with suppress(ValueError):
        if 0.1 <= float(number) <= 100:
            return float(number) / 100
    raise UsageError(wrong("--threshold", text, "a percentage from 0.1% to 100%, such as 5%,"))
