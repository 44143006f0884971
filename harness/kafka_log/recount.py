"""Read the Kafka log of a run back: the actual events, to compare with the expected ones.

It reads a topic partition by partition from its beginning to given ends, and parses the bytes of every record: the key
only shows which event a record claims to be. harness/judging/log_audit.py compares the log with the tape.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from confluent_kafka import KafkaException
from numpy.typing import NDArray

from generators.by_partition import KEY, VALUE, as_arrow
from harness.evidence.observed import STAMPED
from harness.kafka_log.batch_consumer import BatchConsumer, Records
from harness.model import HarnessError, KafkaAddress
from workloads.base import Codec, Values
from workloads.keys import read_keys

CHUNK = 4000
STALL_S = 60.0

# Without the first three settings, librdkafka's own queues slow a reader to about a sixth. A longer queue makes no
# reader faster: it takes memory, and is filled with records behind the span, which are discarded.
CONSUMER_SETTINGS: Mapping[str, Any] = {
    "queued.min.messages": 10_000,
    "fetch.queue.backoff.ms": 10,
    "fetch.message.max.bytes": 4_000_000,
    "queued.max.messages.kbytes": 262_144,
    # A fetch at the end of one partition would keep the first fetch of the next one waiting for half a second.
    "fetch.wait.max.ms": 10,
    "group.id": "streamgauge-recount",
    "enable.auto.commit": False,
    "auto.offset.reset": "earliest",
    # Aborted records are in the log but were never committed. If they are the last of a partition, no record marks its
    # end, so the client must report it.
    "isolation.level": "read_committed",
    "enable.partition.eof": True,
}

Columns = dict[str, NDArray[Any]]


class Span(NamedTuple):
    """A range of offsets of a partition. Some of its records may be missing."""

    partition: int
    begin: int
    end: int


def parse_records(values: Values, keys: Values, codec: Codec) -> Columns:
    """Parse records into columns, without partition and offset."""
    ids = read_keys(keys)
    return {"event_id": ids, **codec.read(values, ids)}


def columns_of(parts: Iterable[tuple[int, Sequence[bytes | None], Sequence[bytes | None]]], codec: Codec) -> Columns:
    """Convert whole partitions (number, values, keys) to the columns of log.parquet; offsets count from 0."""
    return joined([no_records(codec), *(_whole_partition(*part, codec) for part in parts)])


def no_records(codec: Codec, *, stamped: bool = False) -> Columns:
    """Return the columns of an empty log."""
    none = Values.of([])
    columns = _placed(0, np.zeros(0, dtype=np.int64), parse_records(none, none, codec))
    return columns | ({STAMPED: np.zeros(0, dtype=np.int64)} if stamped else {})


def read(address: KafkaAddress, topic: str, ends: Mapping[int, int], codec: Codec, *, stamped: bool = False) -> Columns:
    """Read the whole topic up to the ends, ordered by partition and offset."""
    return joined([*read_in_parts(address, topic, ends, codec, stamped=stamped)])


def read_in_parts(
    address: KafkaAddress, topic: str, ends: Mapping[int, int], codec: Codec, *, stamped: bool = False
) -> Generator[Columns]:
    """Read the topic in parts, for a log that is larger than memory.

    The first part is empty, so that an empty log has its columns too. `stamped` adds the Kafka timestamp of each
    record, which takes a while.
    """
    with open_log(address, topic, codec, stamped=stamped) as read_span:
        yield no_records(codec, stamped=stamped)
        for partition, end in sorted(ends.items()):
            yield from read_span(Span(partition, 0, end))


@contextmanager
def open_log(
    address: KafkaAddress, topic: str, codec: Codec, *, stamped: bool
) -> Iterator[Callable[[Span], Iterator[Columns]]]:
    """Yield a function that reads one span after the other."""
    with open_consumer(address) as consumer:

        def read_span(span: Span) -> Iterator[Columns]:
            for records in _read_span(consumer, topic, span, stamped=stamped):
                yield _parsed(span.partition, records, codec, stamped=stamped)

        yield read_span


@contextmanager
def open_consumer(address: KafkaAddress) -> Iterator[BatchConsumer]:
    consumer = BatchConsumer({**CONSUMER_SETTINGS, **address.librdkafka, "bootstrap.servers": address.bootstrap})
    try:
        yield consumer
    finally:
        consumer.close()


def read_values(address: KafkaAddress, topic: str, ends: Mapping[int, int]) -> list[list[bytes | None]]:
    """Read the raw values of each partition."""
    with open_consumer(address) as consumer:
        spans = [_read_span(consumer, topic, Span(partition, 0, end)) for partition, end in sorted(ends.items())]
        return [[value for records in span for value in records.values] for span in spans]


def read_records(consumer: BatchConsumer, topic: str, span: Span) -> Iterator[pa.RecordBatch]:
    """Yield the raw records of a span as columns."""
    for records in _read_span(consumer, topic, span):
        yield pa.RecordBatch.from_pydict({KEY: as_arrow(records.keys), VALUE: as_arrow(records.values)})


def _parsed(partition: int, records: Records, codec: Codec, *, stamped: bool) -> Columns:
    columns = _placed(partition, records.offsets, parse_records(records.values, records.keys, codec))
    return columns | ({STAMPED: records.stamps} if stamped else {})


def _whole_partition(
    number: int, values: Sequence[bytes | None], keys: Sequence[bytes | None], codec: Codec
) -> Columns:
    return _placed(number, np.arange(len(values)), parse_records(Values.of(values), Values.of(keys), codec))


def _placed(partition: int, offsets: NDArray[np.int64], columns: Columns) -> Columns:
    return {"partition": np.full(len(offsets), partition, dtype=np.int16), "offset": offsets, **columns}


def _read_span(consumer: BatchConsumer, topic: str, span: Span, *, stamped: bool = False) -> Iterator[Records]:
    partition, begin, end = span
    at = max(begin, consumer.first_offset(topic, partition, STALL_S))
    consumer.assign(topic, partition, at)
    deadline = time.monotonic() + STALL_S
    while at < end:
        try:
            records = consumer.consume(min(CHUNK, end - at), 0.5, stamped=stamped)
        except KafkaException as error:
            raise HarnessError(
                f"Partition {partition} of topic {topic} can't be read back: {error.args[0].str()}."
            ) from None
        if records.next_offset >= 0:
            at = records.next_offset
            deadline = time.monotonic() + STALL_S
            records = records.only(slice(int(np.searchsorted(records.offsets, end))))
            if len(records):
                yield records
        elif time.monotonic() > deadline:
            raise HarnessError(
                f"Reading partition {partition} of topic {topic} back stalled for {STALL_S:.0f} s at offset {at:,} of "
                f"{end:,}. See the log of Kafka for the cause. The part that was read is not judged."
            )
    consumer.unassign()


def joined(parts: Sequence[Columns]) -> Columns:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
