"""Other load on the machine of a gate, reported beside the answer.

If there is much of it, wall-clock metrics are withheld, because it slows the processes down. Metrics that count what
the processes used are reported all the same.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

import psutil

from harness.host import cpu_starvation
from harness.util.wait import ends_within

LOOK_S = 2.0
OTHERS_CORES, STOLEN_SHARE = 0.3, 0.02  # more than this is much


@dataclass(frozen=True)
class Conditions:
    """The conditions of one gate. None: the system does not count it."""

    others_cores: float  # cores used by other processes before the gate started anything
    stolen_share: float | None  # the share of CPU time that went to other machines during the rounds
    throttled_share: float | None  # the share of periods in which the CPU quota ran out
    placed: str = ""  # the cores that the sides shared
    oddities: tuple[str, ...] = ()  # how engines left these cores, and the start that was made twice

    @property
    def declined(self) -> str:
        """The reason to withhold wall-clock metrics; "" if there is none."""
        return "; ".join(self._reasons())

    def _reasons(self) -> Iterator[str]:
        if self.others_cores > OTHERS_CORES:
            yield f"others used {self.others_cores:.1f} cores of this machine"
        if (self.stolen_share or 0.0) > STOLEN_SHARE:
            yield f"the host gave {self.stolen_share:.0%} of the machine's CPU time to others (steal)"
        if (self.throttled_share or 0.0) > STOLEN_SHARE:
            yield f"the quota of its cores ran out in {self.throttled_share:.0%} of its periods"

    @property
    def words(self) -> str:
        """The conditions in one line, for any gate."""
        stolen = "not counted here" if self.stolen_share is None else f"{self.stolen_share:.1%}"
        machine = f"others used {self.others_cores:.2f} cores before the gate began; steal {stolen}"
        return "; ".join(filter(None, (machine, self.placed, *self.oddities)))


class Watch:
    """The measurement of conditions, from before a gate starts anything until its rounds are over."""

    def __init__(self) -> None:
        self._others_cores = _cores_of_others()
        self._begun = cpu_starvation.meters()

    def rounds_begin(self) -> None:
        self._begun = cpu_starvation.meters()

    def seen(self) -> Conditions:
        taken = cpu_starvation.taken(self._begun, cpu_starvation.meters())
        return Conditions(self._others_cores, taken.stolen_share, taken.throttled_share)


def _cores_of_others() -> float:
    """Measure the cores that others use. Of our own processes, only this one may run yet."""
    before_s, own_s = _busy_s(), time.process_time()
    begun_s = time.monotonic()
    ends_within(LOOK_S, threading.Event())
    busy_s, used_s = _busy_s() - before_s, time.process_time() - own_s
    return max(0.0, busy_s - used_s) / (time.monotonic() - begun_s)


def _busy_s() -> float:
    times = psutil.cpu_times()
    return float(times.user + times.nice + times.system)
