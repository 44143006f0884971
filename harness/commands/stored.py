"""`recheck` and `report`: what is made again of a stored run or experiment."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness import completion, console, folders
from harness.commands.judged import show
from harness.commands.shared import Json, Run
from harness.experiments import drive_compare, folder, one_run
from harness.experiments.breaking import drive_chaos
from harness.experiments.folder import Folder
from harness.experiments.gating import drive_gate
from harness.experiments.searching import drive_search
from harness.judging import digests
from harness.judging.judge import judge
from harness.model import UsageError
from harness.store import Store
from harness.stored import StoredRun

if TYPE_CHECKING:
    from reports.result import Result

EXPERIMENT_PAGES = {
    "chaos": drive_chaos.write_page,
    "search": drive_search.write_page,
    "compare": drive_compare.write_page,
    "gate": drive_gate.write_page,
}


def recheck(run: Run, as_json: Json = False) -> None:
    """Judge a stored run again, with no engine."""
    result = _judged_again(_ended(run))
    show("recheck", result, as_json)
    one_run.draw(result.path)
    raise typer.Exit(result.verdict.outcome.exit_code)


def _judged_again(place: Store) -> Result:
    """What was made of its events for that is gone before a page is drawn."""
    with console.progress() as screen:
        screen.phase("judge")
        digests.write_at_first_verdict(place)
        stored = StoredRun(place)
        verdict = judge(stored)
        place.write_json("verdict.json", verdict)
        return one_run.report(stored, verdict, screen)


def report(
    run: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER",
            help="The directory of a run or an experiment.",
            autocompletion=completion.run_or_experiment,
        ),
    ],
    as_json: Json = False,
) -> None:
    """Make the page of a stored run or experiment again, from the files that are left."""
    place = run.absolute()
    if folders.is_one(place, folder.FILE):
        experiment = Folder.open(place, *EXPERIMENT_PAGES)
        made = EXPERIMENT_PAGES[experiment.kind](experiment)
        sections = made.sections
    elif one_run.mended_copy(place):
        sections = ()
    else:
        with console.progress() as screen:
            sections = one_run.write_page(_ended(run), screen).sections
    shown = str(place / "report.html")
    missing = [*dict.fromkeys(sentence for section in sections for sentence in section.missing)]
    if as_json:
        print(json.dumps({"command": "report", "run": str(place), "page": shown, "missing": missing}))
    else:
        print("\n".join([shown, *(f"missing: {sentence}" for sentence in missing)]))


def _ended(run: Path) -> Store:
    """A run that nobody works on any more."""
    place = Store.open(run.absolute())
    if not place.has("verdict.json") and place.alive():
        raise UsageError(f"{run} is still going on; wait until its process has ended.")
    return place
