"""Compute during the load how long the oldest due probe has been waiting to be seen in the results.

A probe's cell holds nothing else, so the probe was seen when the cell was. Pure, except for the reader.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np

from generators.tape import Tape
from workloads.base import Oracle

MOST = 25  # probes per call: to compute the cells of a probe takes time
Shows = Callable[[int, int], bool]  # arguments: the number of a key, and the field


class Unseen:
    """The probes that are due and not yet seen. Each call gets the tape as far as it is known."""

    def __init__(self, oracle: Oracle, epoch_ms: int, shows: Shows) -> None:
        self._oracle, self._epoch_ms, self._shows = oracle, epoch_ms, shows
        self._next = 0  # probe
        self._waiting = deque[tuple[float, list[tuple[int, int]]]]()  # due time and cells

    def oldest_ms(self, tape: Tape, at_ms: float) -> float:
        """Return the wait of the oldest unseen probe. `at_ms` counts from the load start."""
        self._note(tape, at_ms)
        while self._waiting and all(self._shows(*cell) for cell in self._waiting[0][1]):
            self._waiting.popleft()
        return at_ms - self._waiting[0][0] if self._waiting else 0.0

    def _note(self, tape: Tape, at_ms: float) -> None:
        """Add the probes that came due since the last call, or a sample of them."""
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
