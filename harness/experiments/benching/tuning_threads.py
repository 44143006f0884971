"""Whose CPU it was: the threads of a process tree, by what they are there for.

The JVM names its threads, and the kernel keeps the first 15 letters of a name and each thread's CPU. Where the kernel
has no /proc there is nothing to tell, and nothing is told.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

PROC = Path("/proc")
TASKS, PYTHON, OTHER, ENDED = "tasks", "Python", "rest of the JVM", "threads that ended"
# The longest names come as they begin; the serial collector works in the "VM Thread".
GROUPS: Mapping[str, tuple[str, ...]] = {
    TASKS: ("Executor task",),
    "compiler of the JVM": ("C1 Compiler", "C2 Compiler", "Sweeper"),
    "garbage collector": ("GC Thread", "G1 ", "VM Thread"),
    "driver: batches": (
        "stream executio",
        "dag-scheduler",
        "task-result",
        "dispatcher",
        "shuffle-excha",
        "broadcast-excha",
    ),
    "driver: reports of progress": ("spark-listener",),
}
ORDER = (*GROUPS, OTHER, PYTHON, ENDED)


@dataclass(frozen=True)
class Used:
    """What one thread has used since it began."""

    group: str
    cpu_s: float


Threads = Mapping[tuple[int, int], Used]  # (process, thread) -> ...


def group(thread: str, program: str) -> str:
    """What a thread is there for, by its name and by the program that it belongs to."""
    if program.startswith("python"):
        return PYTHON
    return next((name for name, begins in GROUPS.items() if thread.startswith(begins)), OTHER)


def spent(first: Threads, last: Threads, total_s: float) -> dict[str, float]:
    """CPU seconds of each group from `first` to `last`. Of the whole, what no living thread has is of ended ones."""
    if not last:
        return {}
    found = dict.fromkeys(ORDER, 0.0)
    for key, used in last.items():
        found[used.group] += used.cpu_s - (first[key].cpu_s if key in first else 0.0)
    found[ENDED] = max(0.0, total_s - sum(found.values()))  # the kernel rounds each thread's for itself
    return found


def threads_of(pid: int) -> Threads:
    """Of a process and all that came from it."""
    with suppress(psutil.NoSuchProcess):
        root = psutil.Process(pid)
        return {key: used for process in (root, *root.children(recursive=True)) for key, used in _threads(process)}
    return {}


def _threads(process: psutil.Process) -> Iterator[tuple[tuple[int, int], Used]]:
    with suppress(OSError, psutil.NoSuchProcess):  # ended meanwhile, or no /proc
        program = process.name()
        for folder in (PROC / str(process.pid) / "task").iterdir():
            with suppress(OSError):
                thread, cpu_s = parse((folder / "stat").read_text())
                yield (process.pid, int(folder.name)), Used(group(thread, program), cpu_s)


def parse(stat: str) -> tuple[str, float]:
    """The name and the CPU seconds, user's and system's, of a line of /proc/PID/task/THREAD/stat."""
    head, _, rest = stat.rpartition(")")  # a name may hold any sign, brackets too
    ticks = rest.split()[11:13]
    return head.partition("(")[2], sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
