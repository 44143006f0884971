"""`streamgauge test`."""

from __future__ import annotations

import configparser
import json
import os
import subprocess
import sys
from typing import Annotated

import typer

from harness.cli.common_flags import Json
from harness.install.origin import IS_CHECKOUT, ROOT
from harness.model import UsageError
from harness.util.suggest import nearest, wrong

OF_ONE = "testenv:"


def own_tests(
    suites: Annotated[
        list[str] | None, typer.Argument(metavar="SUITE", help="Environments of tox.ini. [default: its env_list]")
    ] = None,
    thorough: Annotated[
        bool, typer.Option("--all", help="Also run the slow tests that are skipped by default.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Run the project's own tests."""
    if not IS_CHECKOUT:
        raise UsageError(
            f"The project's own tests lie in its checkout, and this program was installed from a wheel ({ROOT}), which "
            "holds none of them. Take a checkout, and start ./streamgauge test there. `streamgauge selftest` shows "
            "here that the checker can fail."
        )
    known = _environments()
    for suite in suites or []:
        if suite not in known:
            raise UsageError(wrong("SUITE", suite, f"one of {', '.join(known)}", nearest(suite, known)))
    chosen = ["-e", ",".join(suites)] if suites else []
    command = [sys.executable, "-m", "tox", "run", "-c", str(ROOT / "tox.ini"), *chosen]
    variables = os.environ | ({"STREAMGAUGE_TEST_ALL": "1"} if thorough else {})
    told_to = sys.stderr if as_json else None
    code = subprocess.run(command, cwd=ROOT, env=variables, check=False, stdout=told_to).returncode
    if as_json:
        print(json.dumps({"command": "test", "exit": code}))
    raise typer.Exit(code)


def _environments() -> list[str]:
    """List the environments of tox.ini, with those that only run when they are named."""
    found = configparser.ConfigParser(interpolation=None)
    found.read(ROOT / "tox.ini", encoding="utf-8")
    listed = [each.strip() for each in found["tox"]["env_list"].split(",")]
    every = (each.removeprefix(OF_ONE) for each in found.sections() if each.startswith(OF_ONE))
    return list(dict.fromkeys([*listed, *every]))
