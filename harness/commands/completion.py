"""`streamgauge completion`."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from typer._completion_shared import get_completion_script

from harness.commands.shared import Json
from harness.ending import COMPLETING, PROGRAM
from harness.explain import nearest, wrong
from harness.model import UsageError

SHELLS = ("bash", "zsh", "fish")


def completion(
    shell: Annotated[
        str, typer.Argument(metavar="|".join(SHELLS), help="The shell that is to complete what you type.")
    ] = SHELLS[0],
    as_json: Json = False,
) -> None:
    """Print what a shell needs to complete commands and names: eval "$(streamgauge completion bash)"."""
    if shell not in SHELLS:
        raise UsageError(wrong("shell", shell, f"one of {', '.join(SHELLS)}", nearest(shell, SHELLS)))
    script = get_completion_script(prog_name=PROGRAM, complete_var=COMPLETING, shell=shell)
    print(json.dumps({"command": "completion", "shell": shell, "script": script}) if as_json else script)
