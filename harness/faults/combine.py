"""Plans of several faults. A step begins to wait for its moment only when its turn has come.

A; B                one after the other: B begins to wait when A is over
any(A; B)           whichever moment comes first; the others never strike
repeat(3; A)        that many times, each time from the beginning
flip-flop(2; A; B)  A, B, A, B
stagger(5s; A; B)   one after the other, each after a pause of up to this length, drawn from the seed
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.faults.base import Fault
from harness.faults.run_at_poll import Moment
from harness.model import FaultReport


class Sequenced:
    """Steps one after the other, each after its pause. See `harness.faults.base.Fault`."""

    def __init__(self, steps: Sequence[Fault], pauses_ms: Sequence[float] = ()) -> None:
        self._steps = list(steps)
        self._pauses_ms = list(pauses_ms) or [0.0] * len(self._steps)
        self._at = 0
        self._since_ms: int | None = None

    @property
    def needs(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(need for step in self._steps for need in step.needs))

    def poll(self, now: Moment) -> None:
        while self._at < len(self._steps):
            if self._since_ms is None:
                self._since_ms = now.now_ms
            if now.now_ms - self._since_ms < self._pauses_ms[self._at]:
                return
            self._steps[self._at].poll(now)
            if not self._steps[self._at].over():
                return
            self._at, self._since_ms = self._at + 1, None

    def busy(self) -> bool:
        return any(step.busy() for step in self._steps)

    def settled(self) -> bool:
        return all(step.settled() for step in self._steps)

    def over(self) -> bool:
        return self._at == len(self._steps)

    def heal(self, now: Moment) -> None:
        for step in self._steps:
            step.heal(now)

    def reports(self) -> tuple[FaultReport, ...]:
        return tuple(report for step in self._steps for report in step.reports())


class First:
    """The step whose moment comes first. See `harness.faults.base.Fault`."""

    def __init__(self, steps: Sequence[Fault]) -> None:
        self._steps = list(steps)
        self._chosen: Fault | None = None

    @property
    def needs(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(need for step in self._steps for need in step.needs))

    def poll(self, now: Moment) -> None:
        for step in [self._chosen] if self._chosen else self._steps:
            step.poll(now)
            if self._chosen is None and (step.over() or not step.settled()):
                self._chosen = step
                return

    def busy(self) -> bool:
        return any(step.busy() for step in self._steps)

    def settled(self) -> bool:
        return all(step.settled() for step in self._steps)

    def over(self) -> bool:
        return self._chosen is not None and self._chosen.over()

    def heal(self, now: Moment) -> None:
        for step in self._steps:
            step.heal(now)

    def reports(self) -> tuple[FaultReport, ...]:
        """Report only the chosen step: the others never struck."""
        return self._chosen.reports() if self._chosen else self._steps[0].reports()
