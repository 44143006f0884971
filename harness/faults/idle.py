"""Faults that do nothing: none was planned, or this engine can't have the planned one."""

from __future__ import annotations

from harness.faults.run_at_poll import Moment
from harness.model import FaultReport, FaultSpec


class Idle:
    """A fault that reports why it did not happen. A planned one is unreachable (n/a)."""

    def __init__(self, spec: FaultSpec, missing: tuple[str, ...] = ()) -> None:
        self.needs = missing
        self._spec = spec

    def poll(self, now: Moment) -> None:
        pass

    def busy(self) -> bool:
        return False

    def settled(self) -> bool:
        return True

    def over(self) -> bool:
        return True

    def heal(self, now: Moment) -> None:
        pass

    def reports(self) -> tuple[FaultReport, ...]:
        if not self._spec.planned:
            return ()
        why = "n/a: " + "; ".join(self.needs)
        return (FaultReport(self._spec, landed=False, healed=True, proof=why, reachable=False),)
