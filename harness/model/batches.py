"""Batches of an engine, as its durable log records them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Batch:
    """One micro-batch, as the engine's own durable log records it."""

    batch: int
    ends: Mapping[int, int]  # partition -> first offset after the batch
    drop_watermark_ms: int  # an event of this batch was dropped iff its window's end <= this
    committed: bool = True
    replayed: bool = False
    at_ms: int | None = None  # the time that it gave its events; None: unknown
    files: Mapping[int, int] = field(default_factory=dict)  # as `ends`, for what it read from files


@dataclass(frozen=True)
class EarlierRun:
    """A batch that ran and was then forgotten.

    Either the checkpoint was edited while the engine was down, or a crash came before the batch's plan was written;
    then nothing records how far the batch came.
    """

    start: int  # the first engine start that no longer knew the batch
    batch: int
    starts: Mapping[int, int]  # partition -> first offset of the batch
    ends: Mapping[int, int]
    drop_watermark_ms: int
    committed: bool  # False: some or all of it may never have been written


@dataclass(frozen=True)
class FileSeam:
    """The boundary between older events in files and newer ones in Kafka.

    Most of the older events are in files only.
    """

    ends: tuple[int, ...]  # by partition: the first record that is in no file
    begins: tuple[int, ...]  # by partition: the first record that Kafka still has
    until_ms: int | None = None  # older events count from the files, newer ones from Kafka; None: split by `ends`


@dataclass(frozen=True)
class BatchLog:
    """Evidence that narrows [must, may]. If `complete` is False, `note` names the missing piece."""

    batches: tuple[Batch, ...]
    drops_late: bool
    complete: bool
    note: str = ""
    earlier: tuple[EarlierRun, ...] = ()  # what they wrote is in the results all the same
    seam: FileSeam | None = None  # None: no events were in files


@dataclass(frozen=True)
class KeptState:
    """A copy of an engine's state, taken when a batch was committed."""

    number: int  # of the state within the run, from 1
    batch: int
    ends: tuple[int, ...]  # by partition: the first offset after the batch
    watermark_ms: int  # the batch has evicted windows that end by then
    size_bytes: int  # of the copy
