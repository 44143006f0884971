"""What the threads of a JVM use that compile its code while it runs.

They compile most when a JVM is young, and nothing of it is what a job costs for each event. The kernel books each
thread apart, and HotSpot names them.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

PROC = Path("/proc")
NAMES = ("C1 CompilerThre", "C2 CompilerThre", "JVMCI CompilerT")  # of a thread's name the kernel keeps 15 letters


class Compilers:
    """Of all JVMs that were seen, over all looks. A thread that has ended keeps what was seen of it."""

    def __init__(self) -> None:
        self._used_ns: dict[tuple[int, int], int] = {}

    def take_s(self, pids: Iterable[int]) -> float:
        """What they have used up to now."""
        for pid in pids:
            with suppress(OSError):
                for thread in (PROC / str(pid) / "task").iterdir():
                    self._book(pid, thread)
        return sum(self._used_ns.values()) / 1e9

    def _book(self, pid: int, thread: Path) -> None:
        with suppress(OSError, ValueError):
            if (thread / "comm").read_text().rstrip("\n") in NAMES:
                ran_ns = int((thread / "schedstat").read_text().split()[0])
                key = pid, int(thread.name)
                self._used_ns[key] = max(ran_ns, self._used_ns.get(key, 0))
