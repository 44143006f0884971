"""The interface between a run and the system under test.

A run uses an engine only through this protocol, so that every phase of a run can be tested on a fake within a second.
Faults use it too: they kill the engine, examine its durable files, and restart it.
"""

from __future__ import annotations

import signal
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

from harness.engines.job import Job
from harness.model import BatchLog, EngineManifest, KeptState, LastWords, Progress


@dataclass(frozen=True)
class Reached:
    """The engine is held at an armed crash point (c4 only signals that this batch's sink is done)."""

    point: str
    batch: int
    at_ms: int


class RestartOffsets(NamedTuple):
    """The offsets per partition at which the next start begins."""

    restored: tuple[int, ...] = ()  # first offsets that are not in the restored state; (): unknown
    written: tuple[int, ...] = ()  # first offsets that the last start can't have written


@dataclass(frozen=True)
class Member:
    """A process of an engine, as the operating system reports it at this moment."""

    pid: int
    parent: int
    command: tuple[str, ...]
    stopped: bool = False  # state T: a SIGSTOP holds it
    leads: bool = False  # the started process; all others are its descendants
    of_cluster: bool = False  # below a master or a worker, which outlive the driver


@dataclass(frozen=True)
class ClusterState:
    """The state of a cluster, as its master reports it."""

    serves: bool  # it hands out executors, and does not recover from an end
    workers: int  # that it counts as alive
    applications: int
    parallelism: int | None = None  # of Flink's job; 0: it does not run; None: workers do not decide it


class Workers(Protocol):
    """The workers of an engine, with the numbers from 1 to `size`, which changes if one is added or removed."""

    size: int
    head: str  # the name of the process that counts them

    def seen(self) -> ClusterState | None:
        """Ask the master; None if it does not answer."""

    def worker_pids(self, number: int) -> tuple[int, ...]:
        """Return a worker and all processes below it."""

    def add_worker(self) -> int:
        """Start one more worker, which counts from now on, and return its number."""

    def remove_worker(self) -> str:
        """End the last worker in order, for good, and return how it ended."""


@runtime_checkable
class Cluster(Workers, Protocol):
    """A master and its workers, which outlive the driver."""

    def kill_worker(self, number: int) -> None:
        """SIGKILL a worker and all processes below it, as if its machine had ended."""

    def start_worker(self, number: int) -> None: ...

    def kill_master(self) -> int:
        """SIGKILL the master, and return its pid."""

    def start_master(self, *, recovers: bool) -> None:
        """Start the master again at its address, with what it wrote down, or without."""


class Ghost(Protocol):
    """One start of an engine that a fault keeps beside the newest one. It ends with the engine at the latest."""

    def alive(self) -> bool: ...

    def exit_code(self) -> int | None: ...

    def members(self) -> tuple[Member, ...]: ...

    def signal(self, number: signal.Signals, pids: Collection[int]) -> None: ...

    def told(self) -> Progress | None:
        """Return its own newest progress, if it is reported separately from the engine's."""

    def tail(self, lines: int) -> tuple[str, ...]: ...

    def stop(self) -> None:
        """End cleanly (SIGTERM, after a deadline SIGKILL); a frozen one is killed. Safe to call twice."""


class Engine(Protocol):
    """One system under test. Only `kill`, `restart` and `stop` block for long."""

    @property
    def manifest(self) -> EngineManifest: ...

    def start(self) -> None:
        """Start the first process. The caller detects readiness: in `progress` or in the results."""

    @property
    def starts(self) -> int:
        """Return how many processes were started so far."""

    def alive(self) -> bool: ...

    def exit_code(self) -> int | None:
        """Return the newest process's exit code; None while it runs and before the start, negative for a signal."""

    def progress(self) -> Progress | None:
        """Return the newest progress; None if there is none, always None for an engine that reports none."""

    def collect(self) -> None:
        """Copy new evidence (a checkpoint's files) to the run before the engine purges it. Call about every 0.5 s."""

    def batch_log(self) -> BatchLog | None:
        """Parse the evidence; None for an engine that has none. Call after the last `collect`."""

    def keep_state(self, number: int, batch: int) -> KeptState | None:
        """Copy the state after this batch while the engine runs; None if that state is gone."""

    def read_states(self) -> Mapping[str, Sequence[str | int]]:
        """Read the copies, a row for each cell: the copy's `number`, and `key`, `field` and `value` of the cell.
        HarnessError says why they can't be read. Call it after the engine has ended: reading may take as much memory
        again."""

    def tail(self, lines: int) -> tuple[str, ...]:
        """Return the newest lines of the engine's log."""

    def last_words(self) -> LastWords:
        """Return the log lines that explain why it does not go on."""

    def notes(self) -> tuple[str, ...]:
        """Return sentences about survivable problems, such as torn lines of progress."""

    def stop(self) -> None:
        """End cleanly (SIGTERM, after a deadline SIGKILL). Safe to call twice."""

    # For faults.

    @property
    def job(self) -> Job:
        """Return the job that runs or will be started."""

    def swap_job(self, job: Job) -> None:
        """Run this job from the next start on, with the state that it names."""

    def end(self) -> str:
        """Stop as in `stop`, and return the proof."""

    def kill(self) -> str:
        """SIGKILL all processes of the engine, wait until none is left, and return the proof."""

    def restart(self) -> None:
        """Start again with the same configuration. Call from the thread that started the engine."""

    def change(self, changed: Mapping[str, Any]) -> None:
        """Change keys of the run config (`EngineConfig`) from the next start on."""

    @property
    def checkpoint(self) -> Path | None:
        """Return the folder of its state, if it is on this machine."""

    def members(self) -> tuple[Member, ...]:
        """Return all live processes of the newest start, and of its cluster."""

    @property
    def cluster(self) -> Workers | None:
        """Return the cluster that the run started for it; None without one."""

    def signal(self, number: signal.Signals, pids: Collection[int]) -> None:
        """Send a signal to some of the members."""

    def detach(self) -> Ghost:
        """Turn the newest start into a ghost; the engine is down until `restart`."""

    def start_second(self) -> Ghost:
        """Start a second driver beside the first, with the same config but separate crash points and progress."""

    def freeze(self) -> None:
        """SIGSTOP all processes of the engine."""

    def thaw(self) -> None:
        """Undo `freeze`."""

    def arm(self, point: str, batch: int) -> None:
        """Hold the engine at a crash point, in the first batch >= `batch` that has something to write."""

    def disarm(self) -> None:
        """Undo `arm`, and forget the reached point."""

    def reached(self) -> Reached | None: ...

    def planned(self, batch: int) -> bytes | None:
        """Return a batch's durable plan (Spark: the content of offsets/N); None if there is none or it is unknown."""

    def committed(self, batch: int) -> bool:
        """Return whether the batch is durably done (Spark: commits/N exists)."""

    def restart_offsets(self) -> RestartOffsets:
        """Return the offsets that the next start will restore. Call while the engine is down."""

    def restored(self) -> RestartOffsets:
        """Return the offsets that the running process reports as restored."""
