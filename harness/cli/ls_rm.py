"""`ls` and `rm`: list and remove runs and experiments."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from harness.cli import shell_completion
from harness.cli.common_flags import EXPERIMENTS, RUNS, Json, answer, form
from harness.drivers import delete_runs
from harness.host.disk_space import size_in_words
from harness.model import Stopped, UsageError
from harness.rundir import markers
from harness.terminal import console, watching
from harness.util.local_time import local
from reports import listing


def ls(
    folder: Annotated[
        Path | None, typer.Argument(metavar="FOLDER", help="A run, an experiment, or a folder of either.")
    ] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Show the list again when it changes, until Ctrl-C.")] = False,
    as_json: Json = False,
) -> None:
    """List runs and experiments with begin, verdict and size, newest last."""
    if folder and not folder.is_dir():
        raise markers.refusal(folder, *markers.CALLED)
    if not watch:
        answer(as_json, *_listed(folder))
        return
    with suppress(Stopped):  # the only way to end it
        watching.show_changes(lambda: form(as_json, *_listed(folder)))


def _listed(folder: Path | None) -> tuple[dict[str, Any], str]:
    """Return the list as an object and as text."""
    runs = listing.runs(folder or RUNS)
    experiments = listing.experiments(*([folder] if folder else [RUNS, EXPERIMENTS]))
    found = {"runs": runs, "experiments": experiments}
    told = {noun: [each.as_object() for each in listed] for noun, listed in found.items()}
    tables = [
        console.table(
            [
                [each.path.name, each.began, size_in_words(each.size), each.state, local(each.sentence, each.began_ms)]
                for each in listed
            ],
            (noun, "begun", "size", "state", "sentence"),
        )
        for noun, listed in (("run", runs), ("experiment", experiments))
        if listed
    ]
    return told, "\n\n".join(tables) or "no runs here"


def rm(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="RUN",
            help="Runs and experiments to remove. [default: all in runs/ and experiments/ that the flags select]",
            autocompletion=shell_completion.run_or_experiment,
        ),
    ] = None,
    *,
    older_than: Annotated[
        str | None, typer.Option(metavar="AGE", help="Select those older than this, such as 7d, 12h or 30m.")
    ] = None,
    but_last: Annotated[int | None, typer.Option(min=0, metavar="N", help="Select all but the newest N.")] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Also remove runs that an experiment or a running process needs.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List what would be removed, and remove nothing.")] = False,
    as_json: Json = False,
) -> None:
    """Remove runs and experiments, and show how much space was freed."""
    if not paths and older_than is None and but_last is None:
        raise UsageError(
            "No run was selected. Name the runs to remove, or select them with --older-than 7d or --but-last 20."
        )
    choice = delete_runs.chosen(
        delete_runs.candidates(paths) if paths else delete_runs.below(RUNS, EXPERIMENTS),
        older_than_ms=None if older_than is None else delete_runs.age_ms(older_than),
        but_last=but_last,
        now_ms=time.time_ns() // 1_000_000,
        force=force,
    )
    removed = list(delete_runs.clear(choice, dry_run=dry_run))
    text = "\n".join(delete_runs.lines(removed, choice.kept, dry_run=dry_run))
    answer(as_json, delete_runs.as_object(removed, choice.kept, dry_run=dry_run), text)
