"""`recheck` and `report`: judge a stored run again, and rewrite the page of a stored run or experiment."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli import shell_completion
from harness.cli.common_flags import Json, Run, answer
from harness.cli.show_verdict import show
from harness.drivers import one_run, pages
from harness.experiments import folder
from harness.experiments.folder import Folder
from harness.judging import verdict_file
from harness.judging.judge import judge
from harness.judging.stored_run import StoredRun
from harness.model import UsageError
from harness.rundir import markers
from harness.rundir.store import Store
from harness.terminal import console

if TYPE_CHECKING:
    from reports.result import Result


def recheck(run: Run, as_json: Json = False) -> None:
    """Judge a stored run again, without running the engine."""
    result = _judged_again(_ended(run))
    show("recheck", result, as_json)
    one_run.draw(result.path)
    raise typer.Exit(result.verdict.outcome.exit_code)


def _judged_again(run_dir: Store) -> Result:
    """Judge a stored run in a function of its own, so that the memory for its events is free before a page is drawn."""
    with console.progress() as screen:
        screen.phase("judge", "the verdict")
        stored = StoredRun(run_dir)
        verdict = judge(stored)
        verdict_file.keep(run_dir, verdict)
        return one_run.report(stored, verdict, screen)


def report(
    run: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER",
            help="The directory of a run or an experiment.",
            autocompletion=shell_completion.run_or_experiment,
        ),
    ],
    as_json: Json = False,
) -> None:
    """Write the page of a stored run or experiment again, from its files."""
    run_dir = run.absolute()
    unjudged: tuple[str, ...] = ()
    if markers.is_one(run_dir, folder.FILE):
        sections = pages.write_page(Folder.open(run_dir, *pages.KINDS)).sections
    elif one_run.mended_copy(run_dir):
        sections = ()
    else:
        with console.progress() as screen:
            page = one_run.write_page(_ended(run), screen)
        sections = page.sections
        unjudged = () if Store(run_dir).has(verdict_file.FILE) else (page.sentence,)
    shown = str(run_dir / "report.html")
    missing = [*dict.fromkeys(sentence for section in sections for sentence in section.missing)]
    text = "\n".join([shown, *unjudged, *(f"missing: {sentence}" for sentence in missing)])
    answer(as_json, {"command": "report", "run": str(run_dir), "page": shown, "missing": missing}, text)


def _ended(run: Path) -> Store:
    """Open a run, and refuse one that is still running."""
    run_dir = Store.open(run.absolute())
    if not run_dir.has("verdict.json") and run_dir.alive():
        raise UsageError(f"{run} is still running. Wait until its process has ended.")
    return run_dir
