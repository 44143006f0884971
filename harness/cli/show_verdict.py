"""Show the verdict of one run. The modules for this are imported only when the run is over."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from harness.terminal import console, notification

if TYPE_CHECKING:
    from reports.result import Result


def show(command: str, result: Result, as_json: bool) -> None:
    notification.verdict(f"{result.verdict.outcome} {result.verdict.sentence}")
    if as_json:
        from reports.exports import machine

        print(json.dumps(machine.as_object(command, result)), flush=True)
    else:
        from reports import screen

        console.show_result(screen.lines(result), result.verdict.outcome)
