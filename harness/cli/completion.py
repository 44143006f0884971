"""`streamgauge completion`."""

from __future__ import annotations

from typing import Annotated

import typer
from typer._completion_shared import get_completion_script

from harness.cli.common_flags import Json, answer
from harness.model import UsageError
from harness.terminal.command_end import COMPLETING, PROGRAM
from harness.util.suggest import nearest, wrong

SHELLS = ("bash", "zsh", "fish")


def completion(
    shell: Annotated[str, typer.Argument(metavar="|".join(SHELLS), help="Shell to complete in.")] = SHELLS[0],
    as_json: Json = False,
) -> None:
    """Print the completion script of a shell: eval "$(streamgauge completion bash)"."""
    if shell not in SHELLS:
        raise UsageError(wrong("shell", shell, f"one of {', '.join(SHELLS)}", nearest(shell, SHELLS)))
    script = get_completion_script(prog_name=PROGRAM, complete_var=COMPLETING, shell=shell)
    answer(as_json, {"command": "completion", "shell": shell, "script": script}, script)
