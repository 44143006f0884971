"""The other route to the truth: what the Kafka log really holds.

Reads a topic partition by partition from its beginning to given ends, and parses the bytes of every record: the key
says only which event a record claims to be. harness/judging/log_audit.py holds the log against the tape.
"""

from __future__ import annotations

import gc
import time
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from generators.librdkafka import KafkaRefusedError, Reader, Taken
from harness.judging.readings import STAMPED
from harness.model import HarnessError, KafkaAddress
from workloads.base import Codec, Values
from workloads.keys import read_keys

CHUNK = 4000
AHEAD = 8  # chunks that wait to be parsed
STALL_S = 60.0

# Without the first three librdkafka's own queues stall a reader at about a sixth of what it could do.
CONSUMER_SETTINGS: Mapping[str, Any] = {
    "queued.min.messages": 1_000_000,
    "fetch.queue.backoff.ms": 10,
    "fetch.message.max.bytes": 4_000_000,
    "queued.max.messages.kbytes": 262_144,
    # A fetch at the end of one partition would keep the first fetch of the next one waiting for half a second.
    "fetch.wait.max.ms": 10,
    "enable.auto.commit": False,
    "auto.offset.reset": "earliest",
    # What a producer has aborted lies in the log and was never said. The end of a partition is told, for the last of it
    # may be such, and then no record comes with which a partition ends.
    "isolation.level": "read_committed",
    "enable.partition.eof": True,
}

Columns = dict[str, NDArray[Any]]


def parse_records(values: Values, keys: Values, codec: Codec) -> Columns:
    """The records as columns, without their place in the log."""
    ids = read_keys(keys)
    return {"event_id": ids, **codec.read(values, ids)}


def columns_of(parts: Iterable[tuple[int, Sequence[bytes | None], Sequence[bytes | None]]], codec: Codec) -> Columns:
    """Whole partitions (number, values, keys) as the columns of log.parquet; offsets count from 0."""
    return joined([no_records(codec), *(_whole_partition(*part, codec) for part in parts)])


def no_records(codec: Codec, *, stamped: bool = False) -> Columns:
    """An empty log."""
    none = Values.of([])
    columns = _placed(0, np.zeros(0, dtype=np.int64), parse_records(none, none, codec))
    return columns | ({STAMPED: np.zeros(0, dtype=np.int64)} if stamped else {})


def read(address: KafkaAddress, topic: str, ends: Mapping[int, int], codec: Codec, *, stamped: bool = False) -> Columns:
    """The whole topic up to the ends, ordered by partition and offset."""
    return joined([*read_in_parts(address, topic, ends, codec, stamped=stamped)])


def read_in_parts(
    address: KafkaAddress, topic: str, ends: Mapping[int, int], codec: Codec, *, stamped: bool = False
) -> Generator[Columns]:
    """The same, as it comes, for a log that is larger than memory; an empty part comes first, so that an empty log has
    its columns too. `stamped`: with the time that each record has in Kafka, which takes a while to ask of each."""
    reader = Reader(topic, {**CONSUMER_SETTINGS, **address.librdkafka, "bootstrap.servers": address.bootstrap})
    # Octets become columns while the next ones are read: both are done outside of Python's lock, mostly.
    with closing(reader), ThreadPoolExecutor(1) as beside:
        yield no_records(codec, stamped=stamped)
        parsed = deque[Future[Columns]]()
        for partition, end in sorted(ends.items()):
            for taken in _read_partition(reader, topic, partition, end, stamped=stamped):
                parsed.append(beside.submit(_parsed, partition, taken, codec, stamped=stamped))
                if len(parsed) > AHEAD:
                    yield parsed.popleft().result()
        yield from (each.result() for each in parsed)


@contextmanager
def uncollected() -> Iterator[None]:
    """Without the cycle collector, which would walk over all messages again and again, and never find a cycle."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _parsed(partition: int, taken: Taken, codec: Codec, *, stamped: bool) -> Columns:
    columns = _placed(partition, taken.offsets, parse_records(taken.values, taken.keys, codec))
    return columns | ({STAMPED: taken.stamped_ms} if stamped else {})


def _whole_partition(
    number: int, values: Sequence[bytes | None], keys: Sequence[bytes | None], codec: Codec
) -> Columns:
    return _placed(number, np.arange(len(values)), parse_records(Values.of(values), Values.of(keys), codec))


def _placed(partition: int, offsets: NDArray[np.int64], columns: Columns) -> Columns:
    return {"partition": np.full(len(offsets), partition, dtype=np.int16), "offset": offsets, **columns}


def _read_partition(reader: Reader, topic: str, partition: int, end: int, *, stamped: bool) -> Iterator[Taken]:
    """In chunks."""
    at, _ = reader.bounds(partition, STALL_S)
    reader.start(partition, at)
    deadline = time.monotonic() + STALL_S
    while at < end:
        try:
            taken = reader.take(CHUNK, 0.5, stamped=stamped)
        except KafkaRefusedError as error:
            raise HarnessError(f"Partition {partition} of topic {topic} can't be read back: {error}.") from error
        if len(taken) or taken.ended_at is not None:
            deadline = time.monotonic() + STALL_S
            at = int(taken.offsets[-1]) + 1 if taken.ended_at is None else taken.ended_at
            yield taken.below(end)
        elif time.monotonic() > deadline:
            raise HarnessError(
                f"Reading partition {partition} of topic {topic} back stalled for {STALL_S:.0f} s at offset {at:,} of "
                f"{end:,}. The log of Kafka says why; what was read so far is not judged."
            )


def joined(parts: Sequence[Columns]) -> Columns:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
