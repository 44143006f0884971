"""Read from the log of the driver what Spark lost and made good by itself: executors, and tasks that it ran again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from harness.util.texts import many, shown

EXECUTOR = re.compile(r"Lost executor (?P<name>\S+) on (?P<host>\S+): (?P<why>.+)")
# A task that Spark itself cancelled, because its job was stopped, has not failed.
TASK = re.compile(r"Lost task \S+ in stage \S+ \(TID \d+\) (?!.*: TaskKilled)")
# A task that the fault `kill-task` killed, by the reason that workloads/jobs/spark_tasks.py gives.
KILLED = re.compile(r"Lost task \S+ in stage \S+ \(TID \d+\) \([^)]*\): TaskKilled \(streamgauge kill-task\)")
LONGEST = 120
MOST = 3  # executors with their reasons


def lost_tasks(lines: Iterable[str]) -> int:
    """Return how many tasks Spark lost; it runs each of them again if allowed."""
    return sum(TASK.search(line) is not None or KILLED.search(line) is not None for line in lines)


def in_words(lines: Iterable[str]) -> tuple[str, ...]:
    """Return a note for each kind of loss; () if the driver logged none."""
    executors: list[str] = []
    tasks = 0
    for line in lines:
        if lost := EXECUTOR.search(line):
            executors.append(f"{lost['name']} at {lost['host']}: {shown(lost['why'].rstrip(' .'), LONGEST)}")
        tasks += lost_tasks([line])
    return tuple(_notes(executors, tasks))


def _notes(executors: list[str], tasks: int) -> Iterator[str]:
    if executors:
        more = [f"and {len(executors) - MOST:,} more"] if len(executors) > MOST else []
        yield f"Spark lost {many(len(executors), 'executor')} ({'; '.join([*executors[:MOST], *more])})"
    if tasks:
        yield f"{many(tasks, 'task')} of Spark failed, and {'was' if tasks == 1 else 'were'} tried again if allowed"
