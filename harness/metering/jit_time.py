"""Measure the CPU time of a JVM's JIT compiler threads.

They work most in a young JVM, and their work is no cost per event. The kernel accounts for each thread separately, and
HotSpot gives the threads names. For all other threads it reads the time that they wait for a core.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from harness.host.cpu_starvation import PROC, threads_of

NAMES = ("C1 CompilerThre", "C2 CompilerThre", "JVMCI CompilerT")  # the kernel keeps 15 characters of a thread's name


class Compilers:
    """The compiler threads of all JVMs that were seen. Threads that have ended keep their last value."""

    def __init__(self) -> None:
        self._used_ns: dict[tuple[int, int], int] = {}
        self._waited_ns: dict[tuple[int, int], int] = {}

    @property
    def others_waited_s(self) -> float:
        """Return the seconds that all other threads had waited for a core at the last `take_s`."""
        return sum(self._waited_ns.values()) / 1e9

    def take_s(self, pids: Iterable[int]) -> float:
        """Return the CPU seconds of all compiler threads up to now."""
        for (pid, thread), (ran_ns, waited_ns) in threads_of(pids).items():
            with suppress(OSError):
                compiles = (PROC / f"{pid}/task/{thread}/comm").read_text().rstrip("\n") in NAMES
                book, value_ns = (self._used_ns, ran_ns) if compiles else (self._waited_ns, waited_ns)
                book[pid, thread] = max(value_ns, book.get((pid, thread), 0))
        return sum(self._used_ns.values()) / 1e9
