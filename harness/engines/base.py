"""The seam between a run and the system under test.

A run knows an engine only by this protocol, so that every phase of a run can be tried on a fake within a second.
Faults use the same seam: they kill, look at what the engine had made durable, and start it again.
"""

from __future__ import annotations

import signal
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from harness.engines.job import Job
from harness.model import BatchLog, EngineManifest, KeptState, LastWords, Progress


@dataclass(frozen=True)
class Reached:
    """The engine stands at an armed crash point (at c4 it only says that this batch's sink is done)."""

    point: str
    batch: int
    at_ms: int


class Seam(NamedTuple):
    """Where the next start begins, by the first offsets of the partitions."""

    restored: tuple[int, ...] = ()  # that are not in the state which it finds; (): nobody knows
    written: tuple[int, ...] = ()  # that the last start can't have written


@dataclass(frozen=True)
class Member:
    """A process of an engine, as the operating system tells of it at this moment."""

    pid: int
    parent: int
    command: tuple[str, ...]
    stopped: bool = False  # state T: a SIGSTOP holds it
    leads: bool = False  # the one that was started; all others came from it


class Ghost(Protocol):
    """One start of an engine that a fault keeps beside the newest one. It ends with the engine at the latest."""

    def alive(self) -> bool: ...

    def exit_code(self) -> int | None: ...

    def members(self) -> tuple[Member, ...]: ...

    def signal(self, number: signal.Signals, pids: Collection[int]) -> None: ...

    def told(self) -> Progress | None:
        """Its own newest progress, if it tells it apart from the engine's."""

    def tail(self, lines: int) -> tuple[str, ...]: ...

    def stop(self) -> None:
        """End cleanly (SIGTERM, after a deadline SIGKILL); one that is frozen is killed. Safe to call twice."""


class Engine(Protocol):
    """One system under test. Nothing here blocks for long but `kill`, `restart` and `stop`."""

    @property
    def manifest(self) -> EngineManifest: ...

    def start(self) -> None:
        """Start the first process. Readiness is for the caller to see: in `progress` or in the results."""

    @property
    def starts(self) -> int:
        """How many processes were started so far."""

    def alive(self) -> bool: ...

    def exit_code(self) -> int | None:
        """Of the newest process; None while it lives and before the start, negative for a signal."""

    def progress(self) -> Progress | None:
        """The newest line of progress; None without any, always None for an engine that writes none."""

    def collect(self) -> None:
        """Copy new evidence (a checkpoint's files) to the run before the engine purges it. Call about every 0.5 s."""

    def batch_log(self) -> BatchLog | None:
        """The evidence read; None for an engine that has none. After the last `collect`."""

    def keep_state(self, number: int, batch: int) -> KeptState | None:
        """Copy what it holds in its state after this batch, while it goes on; None: it can't be had any more."""

    def read_states(self) -> Mapping[str, Sequence[str | int]]:
        """What the copies hold, a row for each cell: the copy's `number`, and `key`, `field` and `value` of the cell.
        HarnessError says why they can't be read. When the engine has ended: it may take as much memory again."""

    def tail(self, lines: int) -> tuple[str, ...]:
        """The newest lines of the engine's log."""

    def last_words(self) -> LastWords:
        """What its logs say of the reason why it does not go on."""

    def notes(self) -> tuple[str, ...]:
        """Sentences on what was odd but survivable, such as torn lines of progress."""

    def stop(self) -> None:
        """End cleanly (SIGTERM, after a deadline SIGKILL). Safe to call twice."""

    # What faults need.

    @property
    def job(self) -> Job:
        """What runs, or is to be started."""

    def become(self, job: Job) -> None:
        """From the next start on this job runs, on the state that it names."""

    def end(self) -> str:
        """As `stop`, and say what was seen."""

    def kill(self) -> str:
        """SIGKILL everything of the engine, wait until nothing is left, and say what was seen: a proof in words."""

    def restart(self) -> None:
        """Start again with the same configuration. From the thread that started the engine."""

    def change(self, changed: Mapping[str, Any]) -> None:
        """From the next start on some of its orders are others; the keys are those of `EngineConfig`."""

    @property
    def checkpoint(self) -> Path | None:
        """Where it keeps its state, if that is a folder on this machine."""

    def members(self) -> tuple[Member, ...]:
        """All that lives of the newest start."""

    def signal(self, number: signal.Signals, pids: Collection[int]) -> None:
        """To those of the members."""

    def detach(self) -> Ghost:
        """From now on the newest start is a ghost, and the engine is down until `restart`."""

    def second(self) -> Ghost:
        """Start once more while the newest start runs, with the same orders but its own crash points and progress."""

    def freeze(self) -> None:
        """SIGSTOP everything of the engine."""

    def thaw(self) -> None:
        """Undo `freeze`."""

    def arm(self, point: str, batch: int) -> None:
        """Ask the engine to stop at a crash point, in the first batch >= `batch` that has something to write."""

    def disarm(self) -> None:
        """Undo `arm`, and forget what was reached."""

    def reached(self) -> Reached | None: ...

    def planned(self, batch: int) -> bytes | None:
        """The durable plan of a batch (Spark: the content of offsets/N); None if there is none or it can't be known."""

    def committed(self, batch: int) -> bool:
        """Whether the batch is durably done (Spark: commits/N exists)."""

    def seam(self) -> Seam:
        """Offsets that the next start will restore; while the engine is down."""

    def began(self) -> Seam:
        """Offsets that the running process says it restored."""
