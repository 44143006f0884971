"""Distinguishes a slow engine from a starved one, and measures CPU time taken from the machine.

The operating system counts for each thread how long it ran, and how long it was ready to run and waited
(`/proc/<pid>/task/*/schedstat`). An idle engine wants no CPU. A starved one wants some and waits for it most of the
time, while other processes use the machine. Where the system keeps no such counts, no engine is called starved.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from harness.host import cgroup

PROC = Path("/proc")

# An idle engine wants less than this share of one core; one that had just started at a load of 10 wanted 0.15.
WANTED_CORES = 0.25
# A starved engine waited for at least this share of the time in which it wanted a CPU; below that it was slow.
WAITED_SHARE = 0.5
# An engine that had this share of the machine was delayed by its own threads.
OWN_SHARE = 0.5

# A machine is busy from this load of each core on, if tasks waited for a CPU in this share of the last minute.
BUSY_LOAD = 2.0
BUSY_PRESSURE = 50.0

# A p99 depends on one event in a hundred: time taken from the machine below this share leaves it unchanged.
MATTERS_SHARE = 0.01

Threads = Mapping[tuple[int, int], tuple[int, int]]  # (process, thread) -> (ns run, ns waited)


@dataclass(frozen=True)
class Wanted:
    """The CPU time that an engine wanted over some time, and the part it got."""

    seconds: float
    ran_s: float
    waited_s: float

    def starved(self, cores: float) -> bool:
        wanted_s = self.ran_s + self.waited_s
        return (
            wanted_s >= WANTED_CORES * self.seconds > 0
            and self.waited_s >= WAITED_SHARE * wanted_s
            and self.ran_s < OWN_SHARE * cores * self.seconds
        )


class Books:
    """The CPU use of all threads at each poll. The time of a thread that has ended stays counted."""

    def __init__(self) -> None:
        self._last: dict[tuple[int, int], tuple[int, int]] = {}
        self._looks: list[tuple[int, int, int]] = [(0, 0, 0)]  # at_ms, ran_ns, waited_ns

    def take(self, at_ms: int, threads: Threads) -> None:
        _, ran_ns, waited_ns = self._looks[-1]
        for thread, (ran, waited) in threads.items():
            before = self._last.get(thread, (0, 0))
            if ran < before[0] or waited < before[1]:  # another thread has got the same id
                before = (0, 0)
            ran_ns, waited_ns = ran_ns + ran - before[0], waited_ns + waited - before[1]
        self._last = dict(threads)
        self._looks.append((at_ms, ran_ns, waited_ns))

    def since(self, at_ms: int) -> Wanted:
        """Return the use from the newest poll at or before that moment to the last poll."""
        begin = max((look for look in self._looks if look[0] <= at_ms), key=lambda look: look[0])
        end = self._looks[-1]
        begin_ms = begin[0] or at_ms
        return Wanted(max(0, end[0] - begin_ms) / 1000, (end[1] - begin[1]) / 1e9, (end[2] - begin[2]) / 1e9)


@dataclass(frozen=True)
class Machine:
    """The load of the machine at one moment."""

    cores: float  # granted
    load: float  # average over a minute
    pressure: float | None = None  # per cent of the last minute in which a task waited for a CPU


def in_words(wanted: Wanted, machine: Machine) -> str:
    return (
        f"it got {wanted.ran_s:.0f} CPU-s in {wanted.seconds:.0f} s, and its threads were ready and waiting for "
        f"{wanted.waited_s:.0f} s; {_load_of(machine)}"
    )


def busy(machine: Machine) -> str:
    """Return the load of a machine on which a service may miss a deadline; "" for one that is not so busy."""
    is_loaded = machine.load >= BUSY_LOAD * machine.cores
    return _load_of(machine) if is_loaded and (machine.pressure is None or machine.pressure >= BUSY_PRESSURE) else ""


def _load_of(machine: Machine) -> str:
    pressure = "" if machine.pressure is None else f", tasks waited for a CPU {machine.pressure:.0f} % of the time"
    return f"{machine.cores:g} cores at load {machine.load:.0f}{pressure}"


def threads_of(pids: Iterable[int]) -> Threads:
    """Read the counts of all threads of some processes; processes that have ended are left out."""
    found: dict[tuple[int, int], tuple[int, int]] = {}
    for pid in pids:
        with suppress(OSError):
            for thread in (PROC / str(pid) / "task").iterdir():
                with suppress(OSError, ValueError):
                    ran, waited, _ = (thread / "schedstat").read_text().split()
                    found[pid, int(thread.name)] = int(ran), int(waited)
    return found


def machine() -> Machine:
    return Machine(cgroup.cores(), os.getloadavg()[0], _pressure())


def _pressure() -> float | None:
    """Return `some avg60` of /proc/pressure/cpu, where the system has it."""
    with suppress(OSError, ValueError, IndexError):
        return float((PROC / "pressure" / "cpu").read_text().split("avg60=")[1].split()[0])
    return None


@dataclass(frozen=True)
class Meters:
    """The kernel's counters at one poll; see harness/host/cgroup.py."""

    throttling: tuple[tuple[int, int], ...]
    steal: tuple[int, int] | None


@dataclass(frozen=True)
class Taken:
    """Shares of the granted CPU that were taken over some time. None: not counted, as without a quota."""

    throttled_share: float | None  # of the periods, those in which the quota ran out
    stolen_share: float | None  # of the machine's CPU time, given to others by the host

    def in_words(self, cores: float) -> str:
        """Return "" if the shares are too small to matter."""
        said = []
        if (self.throttled_share or 0.0) >= MATTERS_SHARE:
            said.append(f"the quota of {cores:g} cores ran out in {self.throttled_share:.0%} of its periods")
        if (self.stolen_share or 0.0) >= MATTERS_SHARE:
            said.append(f"the host gave {self.stolen_share:.0%} of the machine's CPU time to others (steal)")
        return "; ".join(said)


def meters() -> Meters:
    return Meters(cgroup.throttling(), cgroup.steal())


def taken(before: Meters, after: Meters) -> Taken:
    """Compare two polls. Of several quotas up to the root, the one that throttled most counts."""
    groups = zip(before.throttling, after.throttling, strict=False)
    shares = [share for old, new in groups if (share := _share(old, new)) is not None]
    stolen = _share(before.steal, after.steal) if before.steal and after.steal else None
    return Taken(max(shares, default=None), stolen)


def _share(before: tuple[int, int], after: tuple[int, int]) -> float | None:
    """Return the second number's growth as a share of the first one's; None without growth."""
    whole = after[0] - before[0]
    return (after[1] - before[1]) / whole if whole > 0 else None
