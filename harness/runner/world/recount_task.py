"""The recount of a log in tasks: each reads a part of one partition, and compares it with the plan.

A task needs no other one, so each can run at another place.
"""

from __future__ import annotations

import base64
import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from generators.schedule import Schedule
from harness.judging.recounted import PartialRecount
from harness.kafka_log import recount
from harness.kafka_log.parallel_readers import LogSource
from harness.kafka_log.recount import Columns, Span
from harness.model import RunSpec, Sentinel
from workloads.registry import codec_of, oracle_of

AT_ONCE = 4_000_000  # records of a round, in all tasks: their rows are in memory at the same time


@dataclass(frozen=True)
class Recount:
    """A log to recount, and its plan. It holds secrets: never save it."""

    source: LogSource
    spec: RunSpec
    epoch_ms: int
    marks: tuple[Sentinel, ...]

    def read(self, span: Span) -> tuple[Columns, PartialRecount]:
        """Read a part of a partition; return its records, and their recount."""
        source, codec = self.source, codec_of(self.source.tape)
        with recount.open_log(source.kafka, source.name, codec, stamped=source.stamped) as read_span:
            nothing = recount.no_records(codec, stamped=source.stamped)
            columns = recount.joined([nothing, *read_span(span)])
        return columns, self.of(columns)

    def of(self, columns: Columns) -> PartialRecount:
        return PartialRecount.of(columns, Schedule(self.spec.tape), self.epoch_ms, self.marks, oracle_of(self.spec))

    def as_text(self) -> str:
        return base64.b64encode(pickle.dumps(self)).decode()

    @staticmethod
    def of_text(text: str) -> Recount:
        found: Recount = pickle.loads(base64.b64decode(text))
        return found


def rounds(ends: Mapping[int, int], at_once: int = AT_ONCE) -> Iterator[Sequence[Span]]:
    """Divide a log into rounds with a task for each partition."""
    size = max(1, at_once // max(1, len(ends)))
    for begin in range(0, max(ends.values(), default=0), size):
        yield [Span(number, begin, min(begin + size, end)) for number, end in sorted(ends.items()) if begin < end]


def file_of(partition: int, begin: int) -> str:
    """Return the name of the file of a part: names in order are the order of the log."""
    return f"{partition:06d}-{begin:015d}.arrow"
