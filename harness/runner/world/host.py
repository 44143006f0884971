"""The machine of a real run, and what its parts use of it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import psutil

from harness.engines.base import Engine
from harness.engines.process import ProcessEngine
from harness.host import cgroup, cpu_starvation, disk_space
from harness.host.cpu_starvation import Machine, Threads
from harness.host.oom_kills import Memory
from harness.metering.process_sampling import Accounting, Roots
from harness.rundir.store import Store


class RealHost:
    """See `harness.runner.world.base.Host`. `roots` returns the parts that are our processes, each with its root
    processes; the engine writes below `engines_own`."""

    def __init__(self, engine: ProcessEngine, store: Store, engines_own: Path, roots: Roots) -> None:
        self._engine, self._store, self._engines_own, self.roots = engine, store, engines_own, roots
        self._accounting: Accounting | None = None

    def threads(self) -> Threads:
        return cpu_starvation.threads_of(member.pid for member in self._engine.members())

    def machine(self) -> Machine:
        return cpu_starvation.machine()

    def cpu_s(self, engine: Engine) -> float:
        used = 0.0
        for member in engine.members():
            with suppress(psutil.NoSuchProcess):
                times = psutil.Process(member.pid).cpu_times()
                used += sum(times[:4])  # its own and its ended children's, user and system
        return used

    def free(self) -> Mapping[str, int]:
        """Exclude the small disk that a fault fills: it lies below the engine's own folder."""
        return disk_space.free_below([self._store.path, self._engines_own])

    def memory(self) -> Memory:
        return Memory(cgroup.memory_bytes(), cgroup.killed_for_memory())

    def start_accounting(self) -> None:
        self._accounting = Accounting(self.roots, self._engine.checkpoint, self._store)
        self._accounting.start()

    def stop_accounting(self) -> None:
        if self._accounting:
            self._accounting.stop()
            self._accounting = None
