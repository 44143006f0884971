"""From a fault as it was written to one that can be done to this engine. Add one: a file, and its line here."""

from __future__ import annotations

from collections.abc import Callable

from harness.faults import process
from harness.faults.base import Clock, Fault, wall_clock_ms
from harness.faults.idle import Idle
from harness.model import EngineManifest, FaultSpec, SinkClaim

FAULTS: dict[str, Callable[[FaultSpec, EngineManifest, SinkClaim, Clock], Fault]] = {"kill": process.kill}


def create(spec: FaultSpec, manifest: EngineManifest, claim: SinkClaim, now_ms: Clock = wall_clock_ms) -> Fault:
    return FAULTS[spec.action](spec, manifest, claim, now_ms) if spec.planned else Idle(spec)
