"""Compare what a partition of a topic holds with the plan of its backlog: each record's key and value, and the order.

A partition needs no other one, so that each can be compared at another place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from generators.by_partition import KEY, VALUE, Partition
from generators.spark_plan import Plan
from harness.kafka_log import recount
from harness.kafka_log.recount import Span
from harness.model import KafkaAddress

Record = tuple[bytes, bytes | None]


@dataclass(frozen=True)
class Compared:
    """One partition against its plan."""

    partition: int
    records: int  # in the topic
    planned: int
    extra: int  # in the topic and not in the plan, or more often than there
    missing: int  # in the plan and not in the topic, or less often
    first: int  # the offset of the first difference, also of a mere change of order; -1 if there is none


def of_partition(plan: Plan, address: KafkaAddress, topic: str, span: Span) -> Compared:
    """Read a partition and compare it, in the memory of a few thousand records."""
    with recount.open_consumer(address) as consumer:
        planned = Partition(plan.tape, span.partition).batches(plan.epoch_ms)
        return compare(span.partition, planned, recount.read_records(consumer, topic, span))


def compare(partition: int, planned: Iterable[pa.RecordBatch], logged: Iterable[pa.RecordBatch]) -> Compared:
    """Compare two streams of records. Up to the first difference that takes no object for a record."""
    counts, first = [0, 0], -1
    balance: Counter[Record] = Counter()  # above 0: more often in the log
    for ours, theirs in _in_step(planned, logged):
        if first < 0 and not ours.equals(theirs):
            first = counts[1] + _same(ours, theirs)
        if first >= 0:
            balance.update(_records(theirs))
            balance.subtract(_records(ours))
            balance = Counter({record: count for record, count in balance.items() if count})
        counts = [counts[0] + len(ours), counts[1] + len(theirs)]
    extra = sum(count for count in balance.values() if count > 0)
    missing = -sum(count for count in balance.values() if count < 0)
    return Compared(partition, counts[1], counts[0], extra, missing, first)


def _in_step(
    planned: Iterable[pa.RecordBatch], logged: Iterable[pa.RecordBatch]
) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
    """Yield parts of the same length, and the rest of the longer stream beside empty ones."""
    streams = [(batch.select([KEY, VALUE]) for batch in each if len(batch)) for each in (planned, logged)]
    nothing = pa.RecordBatch.from_pydict({KEY: pa.array([], pa.binary()), VALUE: pa.array([], pa.binary())})
    left = [nothing, nothing]
    while True:
        left = [part if len(part) else next(stream, nothing) for part, stream in zip(left, streams, strict=True)]
        size = min(map(len, left)) or max(map(len, left))
        if not size:
            return
        yield left[0][:size], left[1][:size]
        left = [part[size:] for part in left]


def _same(ours: pa.RecordBatch, theirs: pa.RecordBatch) -> int:
    """Return how many records at the beginning are the same."""
    pairs = zip(_records(ours), _records(theirs), strict=False)
    return next((row for row, (one, other) in enumerate(pairs) if one != other), min(len(ours), len(theirs)))


def _records(batch: pa.RecordBatch) -> Iterator[Record]:
    return zip(batch[KEY].to_pylist(), batch[VALUE].to_pylist(), strict=True)
