"""The schedule of probes, which one server of the tape sends.

A probe campaign is so sparse that each of its cells holds one event. The time at which the cell appears in the results
is that event's latency, whatever the disorder. Each probe campaign gets one view per window length. The campaigns
follow each other in one seeded order, and each probe is due at a seeded time within its interval, so that probes arrive
at all phases of an engine's batches.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from harness.util.seeded_draws import Ints, Lane

_JITTER_BITS = 20


class ProbeSchedule:
    """The due times of all probes of a run, computed with integers only."""

    def __init__(self, seed: int, probes: int, every_ms: int, duration_ms: int) -> None:
        self._probes, self._every_us = probes, every_ms * 1000
        self.total = duration_ms * probes // every_ms if probes else 0
        self._jitter = Lane.of(seed, "probe moment")
        self._order = np.argsort(Lane.of(seed, "probe order").at(np.arange(probes)), kind="stable")

    def due_us(self, slots: Ints) -> Ints:
        """The run is cut into equal intervals. Probe i is due within interval [i, i + 1)."""
        begin = slots * self._every_us // self._probes
        length = (slots + 1) * self._every_us // self._probes - begin
        part = (self._jitter.at(slots) >> np.uint64(64 - _JITTER_BITS)).astype(np.int64)
        return begin + (length * part >> _JITTER_BITS)

    def first_due_at(self, t_us: Ints) -> Ints:
        """Return the first probe that is due at or after each time; `total` if there is none.

        It is exact against `due_us`.
        """
        n = np.clip(t_us * self._probes // self._every_us, 0, self.total)
        while (early := (n < self.total) & (self.due_us(n) < t_us)).any():
            n = n + early
        while (late := (n > 0) & (self.due_us(n - 1) >= t_us)).any():
            n = n - late
        return n

    def campaign(self, slots: Ints) -> NDArray[np.int64]:
        """Return the number of each probe's campaign among the probe campaigns."""
        return self._order[slots % self._probes]
