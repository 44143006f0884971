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
    path: Annotated[Path, typer.Argument(metavar="PATH", help="What `gate --history` writes: a file or a folder.")],
    *,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where the page goes, and what Otava reads.")] = Path(
        "trend"
    ),
    as_json: Json = False,
) -> None:
    """How do gates go over time? A table, a page, and files in which Apache Otava finds change points."""
    from reports import trend_page

    trend_page.refuse_others(out)
    found = history.read(path)
    for each in found.passed_over:
        console.say(f"passed over: {each.sentence}")
    trend_page.write(found, out)
    if as_json:
        answer(trended.as_object(found, out))
        return
    told = [trended.head(found), "", f"{trended.counts(found)}.", *trended.series_lines(found), ""]
    told += [console.table(trended.rows(found), trended.header(found)), "", str(out / "report.html")]
    console.show_result(told, trended.OUTCOMES[trended.newest(found).answer])
