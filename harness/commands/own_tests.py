"""`streamgauge test`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Annotated

import typer

from harness.commands.shared import Json
from harness.model import UsageError
from harness.origin import IS_CHECKOUT, ROOT


def own_tests(
    suites: Annotated[
        list[str] | None, typer.Argument(metavar="SUITE", help="Environments of tox.ini; default: all of them.")
    ] = None,
    thorough: Annotated[bool, typer.Option("--all", help="Also the runs that are left out to save time.")] = False,
    as_json: Json = False,
) -> None:
    """Run the project's own tests."""
    if not IS_CHECKOUT:
        raise UsageError(
            f"The project's own tests lie in its checkout, and this program was installed from a wheel ({ROOT}), which "
            "holds none of them. Take a checkout, and start ./streamgauge test there. `streamgauge selftest` shows "
            "here that the checker can fail."
        )
    chosen = ["-e", ",".join(suites)] if suites else []
    command = [sys.executable, "-m", "tox", "run", "-c", str(ROOT / "tox.ini"), *chosen]
    variables = os.environ | ({"STREAMGAUGE_TEST_ALL": "1"} if thorough else {})
    told_to = sys.stderr if as_json else None
    code = subprocess.run(command, cwd=ROOT, env=variables, check=False, stdout=told_to).returncode
    if as_json:
        print(json.dumps({"command": "test", "exit": code}))
    raise typer.Exit(code)
