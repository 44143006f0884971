"""`streamgauge live`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness.cli import shell_completion
from harness.cli.common_flags import Json, answer
from harness.cli.live_flags import LivePort
from harness.model import UsageError
from harness.rundir import markers
from harness.terminal import console
from harness.terminal.command_end import short_path
from harness.util.wait import wait_until

Watched = Annotated[
    Path,
    typer.Argument(metavar="RUN", help="The directory of a run or an experiment.", autocompletion=shell_completion.run),
]


def live(run: Watched, *, live_port: LivePort = None, as_json: Json = False) -> None:
    """Show a run that goes on in a browser, or write the file that replays a stored one."""
    from harness.experiments.folder import FILE
    from reports.live import export
    from reports.live.follow import LINES

    if not (is_run := markers.is_one(run, markers.RUN)) and not markers.is_one(run, FILE):
        raise markers.refusal(run, markers.RUN)
    if _goes_on(run, is_run=is_run):
        _serve(run, live_port or 0, is_run=is_run)
    stored = export.write_all(run)
    if stored is None:
        raise UsageError(f"{short_path(run)} has nothing to replay: it has no {LINES}. Newer runs write it.")
    answer(as_json, {"command": "live", "page": str(stored)}, f"{short_path(stored)} replays it in a browser.")


def _goes_on(run: Path, *, is_run: bool) -> bool:
    from harness.rundir.store import Store
    from reports import listing

    return Store.open(run).alive() and not Store(run).has("verdict.json") if is_run else listing.is_going_on(run)


def _serve(run: Path, port: int, *, is_run: bool) -> None:
    """Serve the page until the run is over. Ctrl-C ends the page, and not the run."""
    from harness.services import children, live_page

    with children.guard(), live_page.asked(port):
        console.say(f"Live page: {live_page.watch(run)}")
        wait_until(
            lambda: not _goes_on(run, is_run=is_run), deadline_s=float("inf"), what="the run to end", every_s=0.5
        )
