"""Options of the commands that make experiments, which can be interrupted and resumed."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Annotated

import typer

from harness.cli import shell_completion
from harness.model import UsageError

Resume = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="Resume the experiment in this directory.",
        autocompletion=shell_completion.experiment,
    ),
]
ExperimentsOut = Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for experiment directories.")]


def refuse_beside_resume(context: typer.Context, *of_its_name: str) -> None:
    """Refuse options beside --resume: an experiment keeps its first settings, except for the output format.

    `of_its_name` lists options that select the kind of experiment, which are allowed.
    """
    free = ("resume", "as_json", *of_its_name)
    given = _given(context, lambda name: name not in free)
    if given:
        raise UsageError(
            f"{', '.join(given)} can't be combined with --resume, which keeps the settings of the experiment. "
            "Leave it out, or start a new experiment without --resume."
        )


def refuse_beside(context: typer.Context, names: Collection[str], why: str) -> None:
    """Refuse options that have no meaning here. `why` ends the sentence "--x can't be given ..."."""
    given = _given(context, lambda name: name in names)
    if given:
        raise UsageError(f"{', '.join(given)} can't be given {why}. Leave it out.")


def _given(context: typer.Context, wanted: Callable[[str], bool]) -> list[str]:
    """List the typed arguments and options that `wanted` selects."""
    return [
        str(each.name).upper() if each.param_type_name == "argument" else each.opts[0]
        for each in context.command.params
        if wanted(str(each.name)) and _is_given(context, each.name)
    ]


def _is_given(context: typer.Context, name: str | None) -> bool:
    source = context.get_parameter_source(name) if name else None
    return source is not None and source.name == "COMMANDLINE"
