"""`streamgauge completion`."""

from __future__ import annotations

from typing import Annotated

import typer
from typer._completion_shared import get_completion_script

from harness.cli.common_flags import Json, answer
from harness.install import completion_files
from harness.model import UsageError
from harness.terminal.command_end import COMPLETING, PROGRAM
from harness.util.suggest import nearest, wrong

SHELLS = ("bash", "zsh", "fish")


def completion(
    shell: Annotated[str, typer.Argument(metavar="|".join(SHELLS), help="Shell to complete in.")] = SHELLS[0],
    *,
    install: Annotated[
        bool, typer.Option("--install", help="Write the script to a file that the shell reads when it starts.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Print the completion script of a shell, or install it: streamgauge completion bash --install."""
    if shell not in SHELLS:
        raise UsageError(wrong("shell", shell, f"one of {', '.join(SHELLS)}", nearest(shell, SHELLS)))
    script = get_completion_script(prog_name=PROGRAM, complete_var=COMPLETING, shell=shell)
    written = completion_files.install(shell, script) if install else []
    text = "\n".join([*(f"wrote {path}" for path in written), f"start a new {shell}"]) if install else script
    told = {"command": "completion", "shell": shell, "script": script, "written": [str(path) for path in written]}
    answer(as_json, told, text)
