"""The JSON object that `--json` prints."""

from __future__ import annotations

from typing import Any

import msgspec

from reports import why
from reports.result import Result


def as_object(command: str, result: Result) -> dict[str, Any]:
    verdict = result.verdict
    return {
        "command": command,
        "verdict": verdict.outcome.value,
        "exit": verdict.outcome.exit_code,
        "sentence": verdict.sentence,
        "words": list(verdict.words),
        "why": why.name(verdict),
        "run": str(result.path),
        "slack": verdict.slack,
        "covers": verdict.covers,
        "looked": verdict.looked,
        "guarantee": result.guarantee,
        "totals": dict(verdict.totals),
        "checks": msgspec.to_builtins(verdict.checks),
        "certificate": msgspec.to_builtins(result.certificate),
        "measurement": msgspec.to_builtins(result.measurement),
        "withheld": result.withheld,
        "clock": result.clock,
        "taken": result.taken,
        "recovery": msgspec.to_builtins(result.recovery),
    }
