"""A start of an engine that is kept beside the newest one, and the facts about its processes."""

from __future__ import annotations

import signal
from collections.abc import Collection, Iterable
from dataclasses import replace

import psutil

from harness.engines.base import Member
from harness.engines.progress import ProgressFile
from harness.model import Progress
from harness.services.children import Child

STOP_DEADLINE_S = 30.0


class Driver:
    """See `harness.engines.base.Ghost`."""

    def __init__(self, child: Child, progress: ProgressFile | None = None) -> None:
        self._child, self._progress = child, progress

    def alive(self) -> bool:
        return self._child.alive()

    def exit_code(self) -> int | None:
        return self._child.returncode()

    def members(self) -> tuple[Member, ...]:
        return members_of(self._child)

    def signal(self, number: signal.Signals, pids: Collection[int]) -> None:
        self._child.signal_group(number, pids)

    def told(self) -> Progress | None:
        return self._progress.newest() if self._progress else None

    def tail(self, lines: int) -> tuple[str, ...]:
        return tuple(self._child.tail(lines))

    def stop(self) -> None:
        frozen = any(member.stopped for member in self.members())
        self._child.stop(0 if frozen else STOP_DEADLINE_S)

    def kill(self) -> None:
        self._child.kill_group()


def members_of(child: Child) -> tuple[Member, ...]:
    """Return all of its live processes."""
    found = (_member(process, child.pid) for process in child.members())
    return tuple(member for member in found if member)


def members_of_cluster(children: Iterable[Child]) -> tuple[Member, ...]:
    """Return the live processes of master and workers, which no driver leads."""
    found = (member for child in children for member in members_of(child))
    return tuple(replace(member, leads=False, of_cluster=True) for member in found)


def _member(process: psutil.Process, leader: int) -> Member | None:
    try:
        with process.oneshot():
            stopped = process.status() == psutil.STATUS_STOPPED
            return Member(process.pid, process.ppid(), tuple(process.cmdline()), stopped, process.pid == leader)
    except psutil.Error:  # gone since
        return None
