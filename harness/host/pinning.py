"""Pin processes to cores. Two processes that run at the same time on one core have the same neighbours, since the
kernel gives them turns of some milliseconds, so that their costs can be compared to a percent.

Linux alone has this. A control group (`cpuset`), or who started us, may have left us fewer cores than the machine has.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
PASSES = 5  # over all threads: one that is born meanwhile has the cores of the thread that made it


@dataclass(frozen=True)
class Placement:
    """The cores of each part."""

    shared: frozenset[int]  # what is compared
    others: frozenset[int]  # the broker, Redis, and this process
    reason: str = ""  # why nobody is put anywhere

    @property
    def all(self) -> frozenset[int]:
        return self.shared | self.others

    @property
    def words(self) -> str:
        if self.reason:
            return f"nothing is pinned, so that rounds come one after the other: {self.reason}"
        return f"all sides share core {_listed(self.shared)}, all else has {_listed(self.others)}"


def _listed(cores: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(cores)))


def placement() -> Placement:
    """Half of the cores for what is compared, and half for all else."""
    none = frozenset[int]()
    if not hasattr(os, "sched_setaffinity"):
        return Placement(none, none, "this system can't keep a process on one core")
    cores = sorted(os.sched_getaffinity(0))
    try:
        os.sched_setaffinity(0, cores)
    except OSError as error:
        return Placement(none, none, f"the system does not let us: {error.strerror}")
    if len(cores) < 2:
        return Placement(none, none, "there is one core alone")
    half = len(cores) // 2
    return Placement(frozenset(cores[half:]), frozenset(cores[:half]))


def pin(pids: Iterable[int], cores: frozenset[int]) -> set[int]:
    """All threads of these processes. Those that had to be moved."""
    moved: set[int] = set()
    for pid in pids:
        for _ in range(PASSES):
            now = {thread for thread in threads(pid) if _moves(thread, cores)}
            moved |= now
            if not now:
                break
    return moved


def threads(pid: int) -> set[int]:
    with suppress(OSError):
        return {int(each.name) for each in (PROC / str(pid) / "task").iterdir()}
    return set()


def _moves(thread: int, cores: frozenset[int]) -> bool:
    """One that has just ended is nowhere."""
    with suppress(OSError):
        if os.sched_getaffinity(thread) != cores:
            os.sched_setaffinity(thread, cores)
            return True
    return False
