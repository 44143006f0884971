"""Measure once a second the CPU seconds and memory of every part of a run, as whole process trees, and at the end the
CPU time that the machine lost meanwhile.

One pass over the processes serves all parts. A process belongs to a part by its session (each child of the harness has
its own), by its parent, or by its mark. A process of others is checked only once, so that the pass costs the same on a
machine with a thousand processes. Our own parent process of a child adopts and reaps orphans of the child, so it
belongs to the part too, without its own use.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from harness.host import cgroup, cpu_starvation
from harness.metering import hotspot_counters
from harness.metering.cpu_books import Books, Cpu, Identity, Seen
from harness.rundir.live_lines import LiveLines
from harness.rundir.store import Store
from harness.services.children import CHILD_VARIABLE
from harness.services.owners import environment_of, start_of
from harness.util.file_tree import size_below
from harness.util.wait import ends_within

PERIOD_S = 1.0
CPU_CLOCK = 2  # the kind of a process' clock that counts the run time of its threads
ENGINE, WORKERS, HARNESS = "engine", "python workers", "harness"
RESOURCES = ("at_ms", "part", "cpu_user_s", "cpu_system_s", "rss_bytes")
STATE = ("at_ms", "checkpoint_bytes", "gc_s")

# part -> pids of its children; a part that runs elsewhere is absent
Roots = Callable[[], Mapping[str, Sequence[int]]]


class Accounting:
    """A thread that measures from `start` to `stop`, which writes the tables into the run."""

    def __init__(self, roots: Roots, checkpoint: Path | None, store: Store) -> None:
        self._processes, self._checkpoint, self._store = Processes(roots), checkpoint, store
        self._books, self._lines = Books(), LiveLines(store.path)
        self._gc_s: dict[Identity, float] = {}
        self._resources: list[tuple[int, str, float, float, int]] = []
        self._state: list[tuple[int, int | None, float | None]] = []
        self._meters = cpu_starvation.meters()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="accounting", daemon=True)

    def start(self) -> None:
        """Take the first measurement here, so that earlier use does not count, and start the thread."""
        self._sample()
        self._thread.start()

    def stop(self) -> None:
        """Take the last measurement and write the tables."""
        self._ending.set()
        self._thread.join()
        self._sample()
        taken = cpu_starvation.taken(self._meters, cpu_starvation.meters())
        self._store.tell("taken", taken=taken, words=taken.in_words(cgroup.cores()))
        for name, columns, rows in (
            ("resources.parquet", RESOURCES, self._resources),
            ("state.parquet", STATE, self._state),
        ):
            self._store.write_table(name, {column: [row[i] for row in rows] for i, column in enumerate(columns)})

    def _run(self) -> None:
        due_s = time.monotonic() + PERIOD_S
        while not ends_within(due_s - time.monotonic(), self._ending):
            self._sample()
            due_s += PERIOD_S

    def _sample(self) -> None:
        at_ms = self._store.clock.now_ms()
        seen = list(self._processes.sample())
        used = self._books.take(seen)
        for part, usage in used.items():
            self._resources.append((at_ms, part, usage.cpu.user_s, usage.cpu.system_s, usage.rss_bytes))
        self._lines.write(
            "parts",
            at_ms,
            parts={part: (round(usage.cpu.total_s, 3), usage.rss_bytes) for part, usage in used.items()},
            processes=[
                (each.pid, each.name, round(each.cpu.total_s, 3), each.rss_bytes)
                for each in seen
                if each.part in (ENGINE, WORKERS) and each.name
            ],
        )
        for each in seen:
            if each.part == ENGINE and (collecting_s := hotspot_counters.gc_s(each.pid)) is not None:
                self._gc_s[each.identity] = collecting_s
        collected_s = sum(self._gc_s.values()) if self._gc_s else None
        self._state.append((at_ms, folder_bytes(self._checkpoint), collected_s))


class Processes:
    """The processes of all parts, found anew for each sample."""

    def __init__(self, roots: Roots) -> None:
        self._roots = roots
        self._parts: dict[int, str] = {os.getpid(): HARNESS}  # session, or this process -> part
        self._marks: dict[str, str] = {}
        self._ours: set[int] = set()  # the parents of the children
        self._members: dict[int, str] = {}  # pid -> part
        self._below_jvm: set[Identity] = set()  # kept, since the parents of a process may die before it
        self._strangers: set[int] = set()

    def sample(self) -> Iterator[Seen]:
        """Yield one snapshot per process, parents first, so that an exiting child is not counted twice."""
        self._learn_roots()
        pids = psutil.pids()
        self._strangers &= set(pids)
        self._members = {pid: part for pid, part in self._members.items() if pid in set(pids)}
        jvms: set[int] = set()
        for pid in sorted(set(pids) - self._strangers):
            with suppress(psutil.Error, OSError):
                part = self._part_of(pid)
                if part is not None:
                    yield self._seen(pid, part, jvms)
                elif pid not in self._parts:  # a child that is not yet in its own session is no stranger
                    self._strangers.add(pid)

    def _learn_roots(self) -> None:
        for part, pid in ((part, pid) for part, pids in self._roots().items() for pid in pids):
            if self._parts.get(pid) != part:
                self._parts[pid] = part
                self._strangers.discard(pid)
                with suppress(psutil.NoSuchProcess):
                    process = psutil.Process(pid)
                    self._marks[environment_of(process).get(CHILD_VARIABLE, "")] = part
                    if (parent := process.ppid()) != os.getpid():
                        self._parts[parent] = part
                        self._ours.add(parent)
                        self._strangers.discard(parent)

    def _part_of(self, pid: int) -> str | None:
        if pid == os.getpid():
            return HARNESS
        session = os.getsid(pid)
        if session != os.getpid() and session in self._parts:
            self._members[pid] = self._parts[session]
        elif pid not in self._members:
            process = psutil.Process(pid)
            part = self._members.get(process.ppid()) or self._marked(process)
            if part is None:
                return None
            self._members[pid] = part
        return self._members[pid]

    def _marked(self, process: psutil.Process) -> str | None:
        mark = environment_of(process).get(CHILD_VARIABLE)
        return self._marks.get(mark) if mark else None

    def _seen(self, pid: int, part: str, jvms: set[int]) -> Seen:
        process, start = psutil.Process(pid), start_of(pid)
        with process.oneshot():
            name, parent, times = process.name(), process.ppid(), process.cpu_times()
            if name == "java":
                jvms.add(pid)
            if parent in jvms or (parent, start_of(parent)) in self._below_jvm:
                self._below_jvm.add((pid, start))
            if part == ENGINE and name.startswith("python") and (pid, start) in self._below_jvm:
                part = WORKERS
            ended = Cpu(times.children_user, times.children_system)
            if pid in self._ours:
                return Seen(pid, start, parent, part, Cpu(), ended, 0)
            used = exactly(pid, Cpu(times.user, times.system))
            return Seen(pid, start, parent, part, used, ended, process.memory_info().rss, name)


def exactly(pid: int, ticks: Cpu) -> Cpu:
    """Return a process' CPU time to the nanosecond, if the system has a clock for each process.

    The kernel reports user and system time in hundredths of a second. For a round of a gate, which takes half a CPU
    second, the error would be 4 %.
    """
    try:
        total_s = time.clock_gettime(~pid << 3 | CPU_CLOCK)
    except (OSError, OverflowError):
        return ticks
    share = ticks.user_s / ticks.total_s if ticks.total_s else 1.0
    return Cpu(total_s * share, total_s * (1 - share))


def folder_bytes(folder: Path | None) -> int | None:
    """Return the size of all files below a folder; None if it can't be read. Files may vanish meanwhile."""
    if folder is None or not folder.is_dir():
        return None
    return size_below(folder)
