"""Pins processes to cores. Two processes that run at the same time on one core share their neighbours, since the kernel
alternates them every few milliseconds, so their costs can be compared to one per cent.

Linux only. A control group (`cpuset`) or our parent may have left us fewer cores than the machine has.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from math import ceil
from pathlib import Path

from harness.util.texts import many

PROC = Path("/proc")
PASSES = 5  # over all threads: a new thread inherits the cores of its creator


@dataclass(frozen=True)
class Placement:
    """The cores of each part."""

    shared: frozenset[int]  # the compared processes
    others: frozenset[int]  # the broker, Redis, and this process
    reason: str = ""  # why nothing is pinned

    @property
    def all(self) -> frozenset[int]:
        return self.shared | self.others

    @property
    def words(self) -> str:
        if self.reason:
            return f"nothing is pinned, so rounds run one after the other: {self.reason}"
        return f"all sides share core {_listed(self.shared)}, everything else runs on {_listed(self.others)}"


def _listed(cores: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(cores)))


def placement() -> Placement:
    """Give half of the cores to the compared processes, and half to all others."""
    none = frozenset[int]()
    if not hasattr(os, "sched_setaffinity"):
        return Placement(none, none, "this system can't pin a process to a core")
    cores = sorted(os.sched_getaffinity(0))
    try:
        os.sched_setaffinity(0, cores)
    except OSError as error:
        return Placement(none, none, f"the system refuses to pin: {error.strerror}")
    if len(cores) < 2:
        return Placement(none, none, "there is only one core")
    half = len(cores) // 2
    return Placement(frozenset(cores[half:]), frozenset(cores[:half]))


def last(count: float) -> frozenset[int]:
    """Return the last cores that this process may use; none for 0. A part of a core takes a whole one."""
    return frozenset(sorted(os.sched_getaffinity(0))[-ceil(count) :]) if count else frozenset()


def impossible(count: float) -> str:
    """Return why a process can't be pinned to so many cores; "" if it can."""
    if not hasattr(os, "sched_setaffinity"):
        return "this system can't pin a process to a core"
    allowed = len(os.sched_getaffinity(0))
    return f"this process may use {many(allowed, 'core')}" if count > allowed else ""


@contextmanager
def born_on(cores: frozenset[int]) -> Iterator[None]:
    """Pin this thread, and hence all processes that it starts meanwhile: they see no other cores. None: do nothing."""
    if not cores:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def pin(pids: Iterable[int], cores: frozenset[int]) -> set[int]:
    """Pin all threads of these processes; return the threads that had to be moved."""
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
    """A thread that has just ended does not count as moved."""
    with suppress(OSError):
        if os.sched_getaffinity(thread) != cores:
            os.sched_setaffinity(thread, cores)
            return True
    return False
