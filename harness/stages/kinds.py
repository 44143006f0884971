"""How a run goes, by what it begins with."""

from __future__ import annotations

from harness.model import RunSpec
from harness.run import Run
from harness.stages.behind import Behind
from harness.stages.history import FromHistory


def stages(spec: RunSpec) -> type[Run]:
    if spec.tape.history_ms:
        return FromHistory
    return Behind if spec.tape.waits else Run
