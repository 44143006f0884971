"""`streamgauge audit`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from harness.audit import loads as audit_loads
from harness.audit import walk
from harness.cli.common_flags import Json, a_number, conclude
from harness.model import UsageError
from harness.terminal import console
from reports import audited as reports_audited

MOST = 1e12


def audit(
    path: Annotated[
        str, typer.Argument(metavar="PATH", help="Results: a folder tree, seen.txt, a .csv, or redis://HOST:PORT/0.")
    ],
    *,
    rate: Annotated[
        float | None,
        typer.Option(
            metavar="EVENTS/S",
            callback=a_number,
            min=1e-9,
            max=MOST,
            help="Planned rate of each producer.",
        ),
    ] = None,
    total_rate: Annotated[
        float | None,
        typer.Option(
            metavar="EVENTS/S",
            callback=a_number,
            min=1e-9,
            max=MOST,
            help="Planned rate of all producers together.",
        ),
    ] = None,
    loads: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="CSV file with one line per group of results: folder pattern, load."),
    ] = None,
    producers: Annotated[
        int | None, typer.Option(metavar="N", min=1, max=1_000_000, help="Number of producers.")
    ] = None,
    duration: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", callback=a_number, min=1e-3, max=1e9, help="Duration of the load."),
    ] = None,
    campaigns: Annotated[
        int | None, typer.Option(metavar="N", min=1, max=1_000_000, help="Number of campaigns; usually 100.")
    ] = None,
    window: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", callback=a_number, min=1e-3, max=1e6, help="Length of a window; usually 10."),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Show every result set, not only the groups.")] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write an HTML page with figures to this folder.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Check whether the results of any Yahoo benchmark run can be right."""
    if rate is not None and total_rate is not None:
        raise UsageError(
            "--rate is the rate of each producer, and --total-rate the rate of all together. Give one of them."
        )
    flags: dict[str, Any] = {"rate_per_s": rate, "total_per_s": total_rate, "producers": producers}
    flags |= {"duration_s": duration, "campaigns": campaigns, "window_ms": round(window * 1000) if window else None}
    given = {name: value for name, value in flags.items() if value is not None}
    source = "--rate" if rate is not None else "--total-rate" if total_rate is not None else ""
    known = walk.Known(given, source, audit_loads.read(loads) if loads else ())
    if out:
        from reports import audit_page, saved

        saved.refuse_others(out, audit_page.FILE, "an audit")
    audited = walk.audit(path, known, console.say)
    worst = reports_audited.outcome(audited)
    if out:
        audit_page.write(audited, path, out)
    below, told = Path(path), [reports_audited.summary(audited), ""]
    if every or len(audited) <= reports_audited.FEW:
        told.append(console.table(reports_audited.rows(audited, below), reports_audited.EACH))
        told += ["", *reports_audited.sentences(audited, below)]
    else:
        told.append(console.table(reports_audited.screen(audited), reports_audited.HEADER))
        told += reports_audited.endings(audited)
    told += [str(out / "report.html")] if out else []
    conclude(as_json, reports_audited.as_object(audited, path), told, worst)
