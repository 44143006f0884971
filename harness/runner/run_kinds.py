"""Selects the kind of a run by the input that it begins with."""

from __future__ import annotations

from harness.model import RunSpec
from harness.runner.backlog_run import Behind
from harness.runner.file_history_run import FromHistory
from harness.runner.run import Run


def stages(spec: RunSpec) -> type[Run]:
    if spec.tape.history_ms:
        return FromHistory
    return Behind if spec.tape.waits else Run
