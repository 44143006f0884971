"""Faults that do nothing: none was asked for, or this engine can't suffer the one that was."""

from __future__ import annotations

from harness.engines.base import Engine
from harness.model import FaultReport, FaultSpec, Progress


class Idle:
    """Says why nothing happened. Unreachable (n/a) when something was asked for."""

    colour = "none"

    def __init__(self, spec: FaultSpec, missing: tuple[str, ...] = ()) -> None:
        self.needs = missing
        self._spec = spec

    def poll(self, engine: Engine, progress: Progress | None, total: int) -> None:
        pass

    def busy(self) -> bool:
        return False

    def settled(self) -> bool:
        return True

    def heal(self) -> None:
        pass

    def report(self) -> FaultReport:
        why = "n/a: " + "; ".join(self.needs) if self.needs else "no fault was asked for"
        return FaultReport(self._spec, landed=False, healed=True, proof=why, reachable=not self.needs)
