"""`streamgauge doctor`."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import typer

from harness.commands.shared import RUNS, Json
from harness.install import doctor as examiner
from harness.model import Exit
from harness.services.redis import find_server


def doctor(as_json: Json = False) -> None:
    """Check this machine: what is there, what is missing, and how to get it."""
    findings = examiner.examine(RUNS, lambda: Path(find_server().path))
    if as_json:
        print(json.dumps({"command": "doctor", "findings": msgspec.to_builtins(findings)}))
    else:
        print("\n".join(examiner.as_line(finding) for finding in findings))
    raise typer.Exit(Exit.PASS if examiner.all_well(findings) else Exit.BROKEN)
