"""`streamgauge audit`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from harness import console
from harness.audit import walk
from harness.audit.left import Offered
from harness.commands.shared import Json
from reports import audited as reports_audited


def audit(
    path: Annotated[str, typer.Argument(help="A folder tree, seen.txt, a .csv, or redis://HOST:PORT/0.")],
    *,
    rate: Annotated[float | None, typer.Option(min=1e-9, help="Events/s that each producer was to send.")] = None,
    producers: Annotated[int | None, typer.Option(min=1, help="How many producers there were.")] = None,
    duration: Annotated[float | None, typer.Option(min=1e-9, help="Seconds for which they sent.")] = None,
    campaigns: Annotated[int | None, typer.Option(min=1, help="How many campaigns there were: 100.")] = None,
    window: Annotated[float | None, typer.Option(min=1e-3, help="Seconds of a window: 10.")] = None,
    as_json: Json = False,
) -> None:
    """Check results that another run of the Yahoo benchmark left: can they be right?"""
    flags: dict[str, Any] = {"rate_per_s": rate, "producers": producers, "duration_s": duration}
    flags |= {"campaigns": campaigns, "window_ms": round(window * 1000) if window else None}
    given = {name: value for name, value in flags.items() if value is not None}
    audited = walk.audit(path, Offered(**given), frozenset(given), console.say)
    worst = reports_audited.outcome(audited)
    if as_json:
        print(json.dumps(reports_audited.as_object(audited, path)))
    else:
        below = Path(path)
        rows = reports_audited.rows(audited, below)
        table = console.table(rows, reports_audited.HEADER)
        told = reports_audited.endings(audited, below)
        console.show_result([reports_audited.summary(audited), "", table, *told], worst)
    raise typer.Exit(worst.exit_code)
