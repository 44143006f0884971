"""The progress that an engine reports while it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Progress:
    """One line of an engine's progress: all records below `offsets` are processed and committed."""

    UNIT = "milliseconds since 1970"  # of `at`

    at_ms: int
    batch: int
    rows: int
    offsets: Mapping[int, int]
    watermark_ms: int = 0  # 0: unknown
    dropped: int = 0
    took_ms: int | None = None  # the time that the work of this line took; None: not reported
    state_bytes: int = 0  # 0: not reported
    state_cells: int = 0  # rows of the state, 0: not reported
    state_updates: int = 0  # rows of the state written since the previous line, 0: not reported
    memory_bytes: int = 0  # memory of the state store, 0: not reported
    commit_ms: int = 0  # time to write this batch's state to the checkpoint, summed over tasks
    commit_bytes: int = 0  # bytes that were written for that
    end_ms: tuple[int, int] | None = None  # between the batch before and this one, when it took no events
    # By partition: the first offset that is not in the state with which this engine start began. Only on its first
    # line.
    restored: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Checkpoint:
    """One finished checkpoint, as an engine reports it."""

    at_ms: int  # when it began
    took_ms: int
    size_bytes: int
    in_flight_bytes: int = 0  # of data that was in transit between two tasks
    failed: bool = False
    written_bytes: int | None = None  # less than its size if it refers to an older one; None: not reported
