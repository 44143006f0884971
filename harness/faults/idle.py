"""Faults that do nothing: none was asked for, or this engine can't suffer the one that was."""

from __future__ import annotations

from harness.faults.moment import Moment
from harness.model import FaultReport, FaultSpec


class Idle:
    """Says why nothing happened. Unreachable (n/a) when something was asked for."""

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
