"""What an engine's durable log tells of its batches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Batch:
    """One micro-batch as the engine's own durable log tells it."""

    batch: int
    ends: Mapping[int, int]  # partition -> first offset that is not in it any more
    drop_watermark_ms: int  # an event of this batch was dropped iff its window's end <= this
    committed: bool = True
    replayed: bool = False
    at_ms: int | None = None  # the time that it gave its events; None: nobody knows
    files: Mapping[int, int] = field(default_factory=dict)  # as `ends`, of what it took from files


@dataclass(frozen=True)
class EarlierRun:
    """A batch that was run and then forgotten: the checkpoint was edited while the engine was down, or a crash came
    before its plan was written, and nobody knows how far it had come."""

    start: int  # the first start of the engine that knew nothing of it any more
    batch: int
    starts: Mapping[int, int]  # partition -> first offset that was in it
    ends: Mapping[int, int]
    drop_watermark_ms: int
    committed: bool  # else some or all of it may never have been written


@dataclass(frozen=True)
class FileSeam:
    """Older events lie in files, and most of them nowhere else."""

    ends: tuple[int, ...]  # by partition the first record that is in no file
    begins: tuple[int, ...]  # ... and the first one that Kafka still has
    until_ms: int | None = None  # before that moment an event counts from the files, later from Kafka; None: by `ends`


@dataclass(frozen=True)
class BatchLog:
    """Evidence that narrows [must, may]; `complete` is False when a piece of it is missing, and `note` says which."""

    batches: tuple[Batch, ...]
    drops_late: bool
    complete: bool
    note: str = ""
    earlier: tuple[EarlierRun, ...] = ()  # what they wrote to the results is there all the same
    seam: FileSeam | None = None  # None: nothing lay in files


@dataclass(frozen=True)
class KeptState:
    """A copy of an engine's state, as it was when a batch was committed."""

    number: int  # of the run's states, from 1
    batch: int
    ends: tuple[int, ...]  # by partition the first offset that is not in the batch any more
    watermark_ms: int  # what ends by then, the batch has evicted
    size_bytes: int  # of the copy
