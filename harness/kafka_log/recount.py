"""Read the Kafka log of a run back: the actual events, to compare with the expected ones.

It reads a topic partition by partition from its beginning to given ends, and parses the bytes of every record: the key
only shows which event a record claims to be. harness/judging/log_audit.py compares the log with the tape.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, Message, TopicPartition
from numpy.typing import NDArray

from generators.by_partition import KEY, VALUE
from harness.evidence.observed import STAMPED
from harness.model import HarnessError, KafkaAddress
from workloads.base import Codec, Values
from workloads.keys import read_keys

CHUNK = 4000
STALL_S = 60.0

# Without the first three settings, librdkafka's own queues slow a reader to about a sixth. A longer queue makes no
# reader faster: it takes memory, and is filled with records behind the span, which are discarded.
CONSUMER_SETTINGS: Mapping[str, Any] = {
    "queued.min.messages": 100_000,
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
    consumer = Consumer({**CONSUMER_SETTINGS, **address.librdkafka, "bootstrap.servers": address.bootstrap})

    def read_span(span: Span) -> Iterator[Columns]:
        for messages, keys in _read_span(consumer, topic, span):
            yield _parsed(span.partition, messages, keys, codec, stamped=stamped)

    with closing(consumer), uncollected():
        yield read_span


def read_values(address: KafkaAddress, topic: str, ends: Mapping[int, int]) -> list[list[bytes | None]]:
    """Read the raw values of each partition."""
    consumer = Consumer({**CONSUMER_SETTINGS, **address.librdkafka, "bootstrap.servers": address.bootstrap})
    with closing(consumer), uncollected():
        spans = [_read_span(consumer, topic, Span(partition, 0, end)) for partition, end in sorted(ends.items())]
        return [[message.value() for messages, _ in parts for message in messages] for parts in spans]


def read_records(consumer: Consumer, topic: str, span: Span) -> Iterator[pa.RecordBatch]:
    """Yield the raw records of a span as columns."""
    for messages, keys in _read_span(consumer, topic, span):
        columns = {KEY: pa.array(keys, pa.binary()), VALUE: pa.array(map(Message.value, messages), pa.binary())}
        yield pa.RecordBatch.from_pydict(columns)


@contextmanager
def uncollected() -> Iterator[None]:
    """Switch the cycle collector off: it would scan all messages repeatedly, and never find a cycle."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _parsed(
    partition: int, messages: Sequence[Message], keys: Sequence[bytes | None], codec: Codec, *, stamped: bool
) -> Columns:
    values = Values.of(list(map(Message.value, messages)))
    columns = _placed(partition, _offsets(messages), parse_records(values, Values.of(keys), codec))
    if stamped:
        columns[STAMPED] = np.fromiter((message.timestamp()[1] for message in messages), np.int64, len(messages))
    return columns


def _whole_partition(
    number: int, values: Sequence[bytes | None], keys: Sequence[bytes | None], codec: Codec
) -> Columns:
    return _placed(number, np.arange(len(values)), parse_records(Values.of(values), Values.of(keys), codec))


def _placed(partition: int, offsets: NDArray[np.int64], columns: Columns) -> Columns:
    return {"partition": np.full(len(offsets), partition, dtype=np.int16), "offset": offsets, **columns}


def _read_span(consumer: Consumer, topic: str, span: Span) -> Iterator[tuple[list[Message], list[bytes | None]]]:
    partition, begin, end = span
    first, _ = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=STALL_S)
    at = max(begin, first)
    consumer.assign([TopicPartition(topic, partition, at)])
    deadline = time.monotonic() + STALL_S
    while at < end:
        messages = consumer.consume(min(CHUNK, end - at), 0.5)
        if messages:
            keys = list(map(Message.key, messages))
            if None in keys:  # our records have a key; an error or the end of a partition has none
                _refuse_errors(messages, topic, partition)
            at = _offset(messages[-1]) + (messages[-1].error() is None)  # the end has the next offset
            if None in keys or at > end:
                messages = [message for message in messages if not message.error() and _offset(message) < end]
                keys = list(map(Message.key, messages))
            deadline = time.monotonic() + STALL_S
            if messages:
                yield messages, keys
        elif time.monotonic() > deadline:
            raise HarnessError(
                f"Reading partition {partition} of topic {topic} back stalled for {STALL_S:.0f} s at offset {at:,} of "
                f"{end:,}. See the log of Kafka for the cause. The part that was read is not judged."
            )
    consumer.unassign()


def _refuse_errors(messages: list[Message], topic: str, partition: int) -> None:
    for message in messages:
        if (error := message.error()) and error.code() != KafkaError._PARTITION_EOF:
            raise HarnessError(f"Partition {partition} of topic {topic} can't be read back: {error.str()}.")


def _offsets(messages: Sequence[Message]) -> NDArray[np.int64]:
    """Read only the first and last offset if no offset is missing between them: offsets only grow."""
    first, last = _offset(messages[0]), _offset(messages[-1])
    if last - first + 1 == len(messages):
        return np.arange(first, last + 1, dtype=np.int64)
    return np.array([_offset(message) for message in messages], dtype=np.int64)


def _offset(message: Message) -> int:
    return message.offset() or 0  # a record that was read always has one


def joined(parts: Sequence[Columns]) -> Columns:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
