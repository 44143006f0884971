"""The state of an engine at the end of a run, and its batch recount."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

EngineState = Literal[
    "drained",
    "unsettled",  # it reached its end, but missing results may only be unseen
    "stuck",
    "crashed",
    "overrun",  # its load was stopped; only searches of an earlier version did that
    "starved",  # it waited for a CPU that the machine did not give it
    "no-memory",  # the kernel killed a process for lack of memory
    "no-room",  # a disk is full, or nearly
    "unserved",  # Kafka or Redis was down, and no planned fault caused it
    "gone",  # no evidence shows why it ended
]


@dataclass(frozen=True)
class EngineReport:
    """How an engine ended."""

    state: EngineState
    detail: str
    restarts: int = 0
    last_lines: tuple[str, ...] = ()
    log: str = ""  # the file with `last_lines`, relative to the run
    advice: tuple[str, ...] = ()  # suggested lines for its manifest


@dataclass(frozen=True)
class Backfill:
    """A batch job that counted all events again, after the stream."""

    engine: str
    broke_off: str  # why it has no result; "": it has one
    took_ms: int  # from its first start until it had counted all
    cpu_s: float  # of all its starts
    stream_cpu_s: float  # of the stream since its last start
    killed: str = ""  # what was done to it when half was written; "": nothing
    stream_took_ms: int = 0  # from the stream's last start until it was done; 0: not recorded


@dataclass(frozen=True)
class LastWords:
    """The lines of an engine's log that say why it does not continue."""

    log: str  # relative to the run
    lines: tuple[str, ...]
