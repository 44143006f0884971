"""`streamgauge trend`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness.cli.common_flags import Json, answer
from harness.experiments.gating import history
from harness.terminal import console
from reports import trended


def trend(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="File or folder that `gate --history` wrote.")],
    *,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for the page and the files for Otava.")] = Path(
        "trend"
    ),
    as_json: Json = False,
) -> None:
    """Show the results of gates over time: a table, a page, and files for Apache Otava."""
    from reports import saved, trend_page

    saved.refuse_others(out, trend_page.FILE, "a trend")
    found = history.read(path)
    for each in found.passed_over:
        console.say(f"skipped: {each.sentence}")
    trend_page.write(found, out)
    if as_json:
        answer(as_json, trended.as_object(found, out), "")
        return
    told = [trended.head(found), "", f"{trended.counts(found)}.", *trended.series_lines(found), ""]
    told += [console.table(trended.rows(found), trended.header(found)), "", str(out / "report.html")]
    console.show_result(told, trended.OUTCOMES[trended.newest(found).answer])
