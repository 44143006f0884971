"""How the verdict of one run is answered."""

from __future__ import annotations

import json

from harness import console
from reports import screen
from reports.exports import machine
from reports.load import Result


def show(command: str, result: Result, as_json: bool) -> None:
    if as_json:
        print(json.dumps(machine.as_object(command, result)), flush=True)
    else:
        console.show_result(screen.lines(result), result.verdict.outcome)
