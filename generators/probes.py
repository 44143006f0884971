"""When probes are due, and for whom: one server of the tape sends nothing else.

A probe campaign is so sparse that a cell of it holds one event, so that the moment at which the cell appears in the
results is that event's latency, whatever the disorder. Each probe campaign gets one view per window-length of time.
The campaigns follow each other in one seeded order, and each probe is due at a seeded moment of its own stretch, so
that they meet an engine's batches anywhere.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from harness.util.seeded_draws import Ints, Lane

_JITTER_BITS = 20


class ProbeSchedule:
    """The places of all probes of a run, in whole numbers only."""

    def __init__(self, seed: int, probes: int, every_ms: int, duration_ms: int) -> None:
        self._probes, self._every_us = probes, every_ms * 1000
        self.total = duration_ms * probes // every_ms if probes else 0
        self._jitter = Lane.of(seed, "probe moment")
        self._order = np.argsort(Lane.of(seed, "probe order").at(np.arange(probes)), kind="stable")

    def due_us(self, slots: Ints) -> Ints:
        """Probe i is due within [i, i + 1) of the equal stretches that the run is cut into."""
        begin = slots * self._every_us // self._probes
        length = (slots + 1) * self._every_us // self._probes - begin
        part = (self._jitter.at(slots) >> np.uint64(64 - _JITTER_BITS)).astype(np.int64)
        return begin + (length * part >> _JITTER_BITS)

    def first_due_at(self, t_us: Ints) -> Ints:
        """The first probe that is due at or after each moment; `total` if there is none. Exact against `due_us`."""
        n = np.clip(t_us * self._probes // self._every_us, 0, self.total)
        while (early := (n < self.total) & (self.due_us(n) < t_us)).any():
            n = n + early
        while (late := (n > 0) & (self.due_us(n - 1) >= t_us)).any():
            n = n - late
        return n

    def campaign(self, slots: Ints) -> NDArray[np.int64]:
        """Which of the probe campaigns each probe is for."""
        return self._order[slots % self._probes]
