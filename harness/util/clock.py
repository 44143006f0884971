"""The clock of a run: one reading of the machine's clock, advanced by the monotonic clock, so it never steps.

The machine's clock can be set during a run: by NTP on a fresh virtual machine, by hand, after a sleep. Timestamps from
it could then precede their cause. Harness, observer and fleet therefore share one base, which is read once and passed
on as a number: the monotonic clock is the same in all processes of a machine. An engine stamps by the machine's clock;
a `Reading` holds how far that is ahead of the run's clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

TRIES = 3

Nanoseconds = Callable[[], int]


def _boot_ns() -> int:
    """Return the monotonic clock including sleep; a system without such a clock is taken never to sleep."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic_ns() if clock is None else time.clock_gettime_ns(clock)


@dataclass(frozen=True)
class Reading:
    """All clocks, read at one moment."""

    at_ms: int  # by the run's clock
    ahead_ms: int  # machine's clock minus run's clock; negative if it is behind
    slept_ms: int  # total time asleep since boot


class Clock:
    """Time since 1970 that never steps. `zero_ns` is the machine's time at zero of the monotonic clock."""

    def __init__(
        self,
        zero_ns: int | None = None,
        *,
        wall_ns: Nanoseconds = time.time_ns,
        monotonic_ns: Nanoseconds = time.monotonic_ns,
        boot_ns: Nanoseconds = _boot_ns,
    ) -> None:
        self._wall_ns, self._monotonic_ns, self._boot_ns = wall_ns, monotonic_ns, boot_ns
        self.zero_ns = self._beyond_monotonic_ns(wall_ns) if zero_ns is None else zero_ns

    def now_us(self) -> int:
        return (self.zero_ns + self._monotonic_ns()) // 1000

    def now_ms(self) -> int:
        return self.now_us() // 1000

    def pause(self, seconds: float) -> None:
        time.sleep(seconds)

    def read(self) -> Reading:
        ahead_ns = self._beyond_monotonic_ns(self._wall_ns) - self.zero_ns
        slept_ns = self._beyond_monotonic_ns(self._boot_ns)
        return Reading(self.now_ms(), round(ahead_ns / 1e6), round(slept_ns / 1e6))

    def _beyond_monotonic_ns(self, other: Nanoseconds) -> int:
        """Use the try with the least time between the two clock reads: the process may lose its CPU there."""
        return min(self._apart_ns(other) for _ in range(TRIES))[1]

    def _apart_ns(self, other: Nanoseconds) -> tuple[int, int]:
        before_ns, other_ns, after_ns = self._monotonic_ns(), other(), self._monotonic_ns()
        return after_ns - before_ns, other_ns - (before_ns + after_ns) // 2
