"""Moves the older part of a topic into files; Kafka deletes most of it.

Files hold Kafka's values byte for byte, in its order. A partition is cut where its newest event first reaches a moment,
like an exporter that begins a file with the next time stretch. So disorder crosses each cut: older events follow it.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import numpy as np

from harness.engines.job import History
from harness.kafka_log import recount
from harness.model import Cut, FileSeam, KafkaAddress, TapeSpec
from harness.runner.world.topic import TopicLog
from harness.services import kafka
from workloads.base import NO_EVENT, NOTHING, Codec, Columns, Ints, Values

NO_TIME = np.iinfo(np.int64).min
STRETCHES = 6  # time stretches, one file per partition each; every second one is compressed
PACKED = ".gz"


@dataclass(frozen=True)
class Moments:
    """The time range of a tape's history, in epoch milliseconds."""

    tape: TapeSpec
    until_ms: int

    @property
    def stretches_ms(self) -> Ints:
        """Return the end of each stretch."""
        each = self.tape.history_ms / STRETCHES
        return np.array([self.until_ms - round(each * left) for left in reversed(range(STRETCHES))], dtype=np.int64)

    @property
    def kept_ms(self) -> int:
        """Return the time from which on Kafka keeps its records too."""
        return self.until_ms - self.tape.history_kept_ms

    @property
    def days(self) -> list[str]:
        """Return the day on which each stretch begins."""
        begins_ms = self.stretches_ms - self.tape.history_ms // STRETCHES
        return [datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d") for ms in begins_ms.tolist()]


def columns_of(values: Sequence[bytes | None], codec: Codec) -> Columns:
    return codec.read(Values.of(values), np.full(len(values), NOTHING))


def cuts(columns: Columns, moments_ms: Ints) -> list[int]:
    """Return how many records of a partition precede the first one at or after each moment."""
    time_ms = np.where(columns["kind"] == NO_EVENT, NO_TIME, columns["event_time_ms"])
    found: list[int] = np.searchsorted(np.maximum.accumulate(time_ms), moments_ms).tolist()
    return found


def as_lines(values: Sequence[bytes | None], *, packed: bool) -> bytes:
    """Join values to lines. A record without a value becomes an empty line."""
    lines = b"".join((value or b"") + b"\n" for value in values)
    return gzip.compress(lines) if packed else lines


def seam_of(partitions: Sequence[Columns], moments: Moments, by: Cut) -> FileSeam:
    """Place the seam. By time, both sides have an event that is out of order by no more than their overlap."""
    both_ms = np.array([moments.kept_ms, moments.until_ms])
    begins, ends = zip(*(cuts(columns, both_ms) for columns in partitions), strict=True)
    return FileSeam(ends, begins, moments.kept_ms if by == "time" else None)


class HistoryFiles:
    def __init__(self, address: KafkaAddress, topic: str, log: TopicLog, codec: Codec, folder: Path) -> None:
        self._address, self._topic, self._log, self._codec, self._folder = address, topic, log, codec, folder
        self._begun_s = folder.stat().st_mtime

    def move(self, moments: Moments, by: Cut) -> History:
        """Write the records before the moment to files, and keep all deleted ones for the judge."""
        ends = kafka.end_offsets(self._address, self._topic)
        partitions = recount.read_values(self._address, self._topic, ends)
        columns = [columns_of(values, self._codec) for values in partitions]
        for partition, values in enumerate(partitions):
            self._write(partition, values, cuts(columns[partition], moments.stretches_ms), moments.days)
        return History(str(self._folder), self._let_go(seam_of(columns, moments, by)))

    def _let_go(self, seam: FileSeam) -> FileSeam:
        """Delete the records that only files hold, after storing them for the judge."""
        gone = {partition: begins for partition, begins in enumerate(seam.begins) if begins}
        if gone:
            self._log.keep(gone, gone)
            kafka.delete_records(self._address, self._topic, gone)
        return seam

    def _write(self, partition: int, values: Sequence[bytes | None], ends: Sequence[int], days: Sequence[str]) -> None:
        """Set file times in order, for readers that order files by age."""
        for number, (first, end) in enumerate(pairwise([0, *ends])):
            if first == end:
                continue
            kind = PACKED if number % 2 else ""
            path = self._folder / days[number] / f"{partition}-{first:012}-{end:012}.json{kind}"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(as_lines(values[first:end], packed=bool(kind)))
            at_s = self._begun_s - STRETCHES + number
            os.utime(path, (at_s, at_s))
