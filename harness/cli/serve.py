"""`streamgauge serve`: the runs and experiments of a folder in a browser."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from harness.cli.common_flags import EXPERIMENTS, RUNS, Json
from harness.model import UsageError
from harness.rundir import markers
from harness.web.server import Server


def serve(
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="RUNS",
            help="A folder of runs or experiments, or one experiment. [default: runs/ and experiments/]",
        ),
    ] = None,
    *,
    port: Annotated[
        int | None,
        typer.Option("--port", metavar="PORT", min=1, max=65535, help="Serve on this port. [default: a free one]"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show runs and experiments in a browser: filter them, put two side by side, follow a plan over time."""
    if as_json:
        raise UsageError("`serve` has no --json: a server has no result. `streamgauge ls --json` lists the runs.")
    roots = _roots(folder)
    from reports.browse.site import Site

    with Server(Site(roots).answers, port or 0) as server:
        print(f"{' and '.join(map(str, roots.values()))}: {server.url} until Ctrl-C.", flush=True)
        threading.Event().wait()


def _roots(folder: Path | None) -> Mapping[str, Path]:
    """Return the served folders by the name that an address begins with."""
    if folder is None:
        return {RUNS.name: RUNS, EXPERIMENTS.name: EXPERIMENTS}
    if not folder.is_dir():
        raise markers.refusal(folder, *markers.CALLED)
    if markers.is_one(folder, markers.RUN):
        raise UsageError(
            f"{folder} is one run, and `serve` shows a folder of runs. Open {folder / 'report.html'}, or serve the "
            f"folder above it: streamgauge serve {folder.parent}"
        )
    return {folder.resolve().name or "runs": folder}
