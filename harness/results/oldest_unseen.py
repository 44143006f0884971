"""For how long the oldest probe has waited that is due and that no reader has seen: while a load goes on.

A probe's cell holds nothing else, so that it was seen when anything of its cell was. Pure, but for the reader.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np

from generators.tape import Tape
from workloads.base import Oracle

MOST = 25  # of those that came due between two looks: to ask where an event lies takes its time
Shows = Callable[[int, int], bool]  # the number of a key, and the field


class Unseen:
    """Asked again and again, with the tape as far as it is known."""

    def __init__(self, oracle: Oracle, epoch_ms: int, shows: Shows) -> None:
        self._oracle, self._epoch_ms, self._shows = oracle, epoch_ms, shows
        self._next = 0  # probe
        self._waiting = deque[tuple[float, list[tuple[int, int]]]]()  # when due, and its cells

    def oldest_ms(self, tape: Tape, at_ms: float) -> float:
        """`at_ms`: since the epoch."""
        self._note(tape, at_ms)
        while self._waiting and all(self._shows(*cell) for cell in self._waiting[0][1]):
            self._waiting.popleft()
        return at_ms - self._waiting[0][0] if self._waiting else 0.0

    def _note(self, tape: Tape, at_ms: float) -> None:
        """Those that have come due since."""
        if not tape.spec.probes:
            return
        until = int(tape.probes.first_due_at(np.array([int(at_ms * 1000)], dtype=np.int64))[0])
        for slot in range(self._next, until, 1 + (until - self._next) // MOST):
            events = tape.events(tape.spec.servers, np.array([slot], dtype=np.int64))
            cells = self._oracle.settle(self._oracle.plan([events]), self._epoch_ms).cell.tolist()
            codes = self._oracle.codes
            named = [(codes.key(cell), codes.field(cell)) for cell in cells]
            self._waiting.append((int(events.intended_us[0]) / 1000, named))
        self._next = max(self._next, until)
