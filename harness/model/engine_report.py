"""How an engine fared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

EngineState = Literal[
    "drained",
    "unsettled",  # at its end, but what is missing may only be unseen
    "stuck",
    "crashed",
    "overrun",  # its load was given up: searches of an earlier version did that
    "starved",  # the machine did not let it run
    "no-memory",  # the kernel killed a process to get memory back
    "no-room",  # a disk is as good as full
    "unserved",  # Kafka or Redis was gone, and no planned fault did it
    "gone",  # nothing says what became of it
]


@dataclass(frozen=True)
class EngineReport:
    """How the engine itself fared."""

    state: EngineState
    detail: str
    restarts: int = 0
    last_lines: tuple[str, ...] = ()
    log: str = ""  # the file, below the run, in which they are
    advice: tuple[str, ...] = ()  # lines for its manifest


@dataclass(frozen=True)
class Backfill:
    """How a batch fared that counted all once more, after the stream."""

    engine: str
    broke_off: str  # why it has no answer; "": it has
    took_ms: int  # from its first start until all was counted
    cpu_s: float  # of all its starts
    stream_cpu_s: float  # of the stream since its last start
    killed: str = ""  # what was done to it when it had written half; "": it was let be
    stream_took_ms: int = 0  # from the stream's last start until it was done; 0: nobody noted it


@dataclass(frozen=True)
class LastWords:
    """What an engine's log says of the reason why it does not go on."""

    log: str  # below the run
    lines: tuple[str, ...]
