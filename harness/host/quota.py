"""A CPU quota for what a run starts: a control group below our own, for a number of cores that is not whole.

A quota does not slow a core down. The kernel lets all threads of the group run at full speed until they have used their
share of a period, and stops them all for the rest of it, as in a container with a limit. Linux only, and only where we
may make a group: with the `cpu` controller of version 1, or where version 2 delegates it to us.
"""

from __future__ import annotations

import os
import secrets
import sys
from contextlib import suppress
from pathlib import Path

from harness.host import cgroup
from harness.model import HarnessError
from harness.util.texts import many

PERIOD_US = 100_000  # as the limits of Docker and Kubernetes
NAME = "streamgauge"
MEMBERS = "cgroup.procs"


class Quota:
    """A group that may use so many cores. It is made when it is first needed."""

    def __init__(self, cores: float) -> None:
        self._cores = cores
        self._folder: Path | None = None
        self._stopped = (0, 0)

    @property
    def group(self) -> Path:
        """Return the group's folder."""
        if self._folder is None:
            self._folder = make(self._cores)
        return self._folder

    def remove(self) -> None:
        """Remove the group, whose processes have ended. Safe to call twice."""
        if self._folder:
            self._stopped = periods(self._folder)
            with suppress(OSError):  # the next group that is made removes it
                self._folder.rmdir()
        self._folder = None

    def in_words(self) -> str:
        """Return how often the quota stopped the group; "" before it was removed."""
        there, stopped = self._stopped
        if not there:
            return ""
        length = f"{many(there, 'period')} of {PERIOD_US // 1000} ms"
        if not stopped:
            return f"its quota of {self._cores:g} cores never stopped it, in {length}"
        return f"its quota of {self._cores:g} cores stopped all of its threads for the rest of {stopped:,} of {length}"


def is_part(cores: float) -> bool:
    """Return whether so many cores take a quota: cores are pinned one by one."""
    return cores != int(cores)


def impossible(cores: float) -> str:
    """Return why no group with this quota can be made; "" if it can."""
    try:
        make(cores).rmdir()
    except HarnessError as why:
        return str(why)
    return ""


def make(cores: float) -> Path:
    """Make a group below our own, and remove those of harnesses that ended without doing it."""
    if sys.platform != "linux":
        raise HarnessError("only Linux has control groups")
    why = "no control group with the controller `cpu` is visible"
    for own in cgroup.own_groups("cpu"):
        _sweep(own)
        folder = own / f"{NAME}-{os.getpid()}-{secrets.token_hex(4)}"
        try:
            folder.mkdir()
        except OSError as error:
            why = f"no control group can be made in {own} ({error.strerror})"
            continue
        try:
            limit(folder, cores)
        except OSError as error:
            folder.rmdir()
            why = f"a control group below {own} takes no quota ({error.strerror})"
        else:
            return folder
    raise HarnessError(why)


def limit(group: Path, cores: float) -> None:
    """Write the quota. A group of version 2 without the controller has no file for it."""
    quota_us = round(cores * PERIOD_US)
    new, period, quota = group / "cpu.max", group / "cpu.cfs_period_us", group / "cpu.cfs_quota_us"
    if new.exists():
        new.write_text(f"{quota_us} {PERIOD_US}\n", encoding="ascii")
        return
    for file, value in ((period, PERIOD_US), (quota, quota_us)):
        if not file.exists():
            raise FileNotFoundError(2, "the controller `cpu` is not delegated to it")
        file.write_text(f"{value}\n", encoding="ascii")


def periods(group: Path) -> tuple[int, int]:
    """Return (periods in which it wanted to run, periods in which it was stopped)."""
    text = ""
    with suppress(OSError):
        text = (group / "cpu.stat").read_text(encoding="ascii")
    return cgroup.counter(text, "nr_periods") or 0, cgroup.counter(text, "nr_throttled") or 0


def _sweep(own: Path) -> None:
    """Remove empty groups of processes that are gone. One with members stays: it can't be removed."""
    for left in own.glob(f"{NAME}-*-*"):
        pid = left.name.split("-")[1]
        if pid.isdigit() and not Path(f"/proc/{pid}").exists():
            with suppress(OSError):
                left.rmdir()
