"""What an engine tells while it is at work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Progress:
    """One line of an engine's progress: all of the log below `offsets` is done and committed."""

    UNIT = "milliseconds since 1970"  # of `at`

    at_ms: int
    batch: int
    rows: int
    offsets: Mapping[int, int]
    watermark_ms: int = 0  # 0: it does not know
    dropped: int = 0
    took_ms: int | None = None  # what lies behind this line; None: it does not say
    state_bytes: int = 0  # 0: it does not say
    state_cells: int = 0  # rows of the state, 0: it does not say
    state_updates: int = 0  # rows of it that were written since the line before, 0: it does not say
    memory_bytes: int = 0  # that the store of the state uses, 0: it does not say
    commit_ms: int = 0  # that it took to bring the state of this batch into the checkpoint, all tasks together
    commit_bytes: int = 0  # that were written there
    end_ms: tuple[int, int] | None = None  # between the batch before and this one, when it took no events
    # The first offsets that are not in the state with which its start began, on the first line of that; else nothing.
    restored: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Checkpoint:
    """One checkpoint that is over, as an engine tells it."""

    at_ms: int  # it was begun
    took_ms: int
    size_bytes: int
    in_flight_bytes: int = 0  # kept of what was on its way between two tasks
    failed: bool = False
