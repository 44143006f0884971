"""Read partitions through librdkafka's C interface, which hands over many records as one array of pointers.

confluent-kafka makes three Python objects per record, which cost as much CPU as fetching and parsing it. Here the bytes
of all records of a batch are copied at once: librdkafka keeps the records of a fetch one after the other.
"""

from __future__ import annotations

import ctypes
import weakref
from collections import deque
from collections.abc import Mapping
from ctypes import POINTER, byref, c_char_p, c_int, c_int32, c_int64, c_size_t, c_ssize_t, c_void_p
from dataclasses import dataclass
from typing import Any

import numpy as np
from confluent_kafka import KafkaError, KafkaException
from numpy.typing import NDArray

from generators.librdkafka import MESSAGE, Signatures, configured, library, started
from workloads.base import NOTHING, Ints, Mask, Values

CONSUMER = 1
PAGE = 4096  # bytes; no system has smaller ones

_CONSUMER: Signatures = {
    "rd_kafka_poll_set_consumer": (c_int, c_void_p),
    "rd_kafka_queue_get_consumer": (c_void_p, c_void_p),
    "rd_kafka_queue_destroy": (None, c_void_p),
    "rd_kafka_consumer_close": (c_int, c_void_p),
    "rd_kafka_query_watermark_offsets": (
        *(c_int, c_void_p, c_char_p, c_int32, POINTER(c_int64), POINTER(c_int64), c_int),
    ),
    "rd_kafka_topic_partition_list_new": (c_void_p, c_int),
    "rd_kafka_topic_partition_list_add": (c_void_p, c_void_p, c_char_p, c_int32),
    "rd_kafka_topic_partition_list_set_offset": (c_int, c_void_p, c_char_p, c_int32, c_int64),
    "rd_kafka_topic_partition_list_destroy": (None, c_void_p),
    "rd_kafka_assign": (c_int, c_void_p, c_void_p),
    "rd_kafka_consume_batch_queue": (c_ssize_t, c_void_p, c_int, c_void_p, c_size_t),
    "rd_kafka_message_timestamp": (c_int64, c_void_p, POINTER(c_int)),
}
_PER_RECORD: Signatures = {"rd_kafka_message_destroy": (None, c_void_p)}


@dataclass(frozen=True)
class Records:
    """Some records of a partition, in their order."""

    offsets: Ints
    keys: Values
    values: Values
    stamps: Ints  # Kafka's timestamps; empty if they are not wanted
    next_offset: int  # behind them, and behind what is no record; -1 if nothing came

    def __len__(self) -> int:
        return len(self.offsets)

    def only(self, rows: slice) -> Records:
        """Return some of them."""
        return Records(
            self.offsets[rows], self.keys.only(rows), self.values.only(rows), self.stamps[rows], self.next_offset
        )


class BatchConsumer:
    """A consumer of one partition after the other, without a consumer group."""

    def __init__(self, settings: Mapping[str, object]) -> None:
        self._library = calls = library(_CONSUMER)
        self._destroy = library(_PER_RECORD, ctypes.PyDLL).rd_kafka_message_destroy
        self._client = started(calls, CONSUMER, configured(calls, settings))
        calls.rd_kafka_poll_set_consumer(self._client)
        self._queue = calls.rd_kafka_queue_get_consumer(self._client)
        self.close = weakref.finalize(self, _end, calls, self._client, self._queue)

    def first_offset(self, topic: str, partition: int, deadline_s: float) -> int:
        """Return the offset of the oldest record."""
        low, high = c_int64(), c_int64()
        name, deadline_ms = topic.encode(), int(deadline_s * 1000)
        _refuse(
            self._library.rd_kafka_query_watermark_offsets(
                self._client, name, partition, byref(low), byref(high), deadline_ms
            )
        )
        return low.value

    def assign(self, topic: str, partition: int, offset: int) -> None:
        calls, name = self._library, topic.encode()
        places = calls.rd_kafka_topic_partition_list_new(1)
        try:
            calls.rd_kafka_topic_partition_list_add(places, name, partition)
            _refuse(calls.rd_kafka_topic_partition_list_set_offset(places, name, partition, offset))
            _refuse(calls.rd_kafka_assign(self._client, places))
        finally:
            calls.rd_kafka_topic_partition_list_destroy(places)

    def unassign(self) -> None:
        _refuse(self._library.rd_kafka_assign(self._client, None))

    def consume(self, most: int, deadline_s: float, *, stamped: bool = False) -> Records:
        """Return up to so many records, as soon as they are there or the deadline is over. Raise KafkaException if
        Kafka refuses."""
        calls, pointers = self._library, np.zeros(most, dtype=np.int64)
        count = calls.rd_kafka_consume_batch_queue(self._queue, int(deadline_s * 1000), pointers.ctypes.data, most)
        pointers = pointers[: max(0, count)]
        try:
            return self._copied(pointers, stamped=stamped)
        finally:
            deque(map(self._destroy, pointers.tolist()), maxlen=0)

    def _copied(self, pointers: Ints, *, stamped: bool) -> Records:
        messages = _structs(pointers)
        errors, offsets = messages["err"], messages["offset"]
        for wrong in messages[(errors != 0) & (errors != KafkaError._PARTITION_EOF)][:1]:
            why = ctypes.string_at(int(wrong["payload"]), int(wrong["length"])) if wrong["payload"] else b""
            raise KafkaException(KafkaError(int(wrong["err"]), why.decode("utf-8", "backslashreplace") or None))
        # The end of a partition is no record, and has the offset of the next one.
        next_offset = int(offsets[-1] + (errors[-1] == 0)) if len(messages) else -1
        if errors.any():
            pointers, messages = pointers[errors == 0], messages[errors == 0]
            offsets = messages["offset"]
        keys, values = _fields(messages)
        stamps = [self._stamp(pointer) for pointer in pointers.tolist()] if stamped else []
        return Records(offsets, keys, values, np.array(stamps, dtype=np.int64), next_offset)

    def _stamp(self, pointer: int) -> int:
        stamp: int = self._library.rd_kafka_message_timestamp(pointer, byref(c_int()))
        return stamp


class _Memory:
    """Bytes at an address, for numpy."""

    def __init__(self, address: int, length: int) -> None:
        self.__array_interface__: Mapping[str, Any] = {
            "data": (address, True),
            "shape": (length,),
            "typestr": "|u1",
            "version": 3,
        }


def _structs(pointers: Ints) -> NDArray[np.void]:
    """Copy the structs at these addresses into an array."""
    if not len(pointers):
        return np.zeros(0, dtype=MESSAGE)
    begin, size = int(pointers.min()), MESSAGE.itemsize
    length = int(pointers.max()) - begin + size
    anywhere: NDArray[np.void] = np.ndarray(
        (length - size + 1,), f"V{size}", np.asarray(_Memory(begin, length)), 0, (1,)
    )
    return anywhere[pointers - begin].view(MESSAGE)


def _fields(messages: NDArray[np.void]) -> tuple[Values, Values]:
    """Copy keys and values. In a fetch each key is followed by its value, with a few bytes around them."""
    addresses, lengths = np.empty((2, len(messages), 2), dtype=np.int64)
    for column, (address, length) in enumerate((("key", "key_length"), ("payload", "length"))):
        addresses[:, column], lengths[:, column] = messages[address], messages[length]
    missing, addresses, lengths = addresses == 0, addresses.ravel(), lengths.ravel()
    begins, held = np.zeros(len(addresses), dtype=np.int64), lengths > 0
    octets, begins[held] = copied(addresses[held], lengths[held])
    begins, lengths = begins.reshape(missing.shape), np.where(missing, NOTHING, lengths.reshape(missing.shape))
    keys, values = (Values(octets, begins[:, column], lengths[:, column]) for column in (0, 1))
    return keys, values


def copied(addresses: Ints, lengths: Ints) -> tuple[NDArray[np.uint8], Ints]:
    """Copy the bytes at these addresses. Return them, with spare ones behind, and where those of each address begin.

    What lies between two of them is copied, too, if it is less than a page: then both of its ends are on pages that can
    be read, and no other page lies between.
    """
    if not len(addresses):
        return np.zeros(PAGE, dtype=np.uint8), addresses
    ends = addresses + lengths
    first = np.flatnonzero(np.append(True, _apart(addresses[1:] - ends[:-1])))
    sources, sizes = addresses[first], ends[np.append(first[1:], len(ends)) - 1] - addresses[first]
    targets = np.cumsum(sizes) - sizes
    octets = np.empty(int(sizes.sum()) + PAGE, dtype=np.uint8)
    octets[-PAGE:] = 0
    to = octets.ctypes.data
    for target, source, size in zip(targets.tolist(), sources.tolist(), sizes.tolist(), strict=True):
        ctypes.memmove(to + target, source, size)
    return octets, addresses + np.repeat(targets - sources, np.diff(first, append=len(addresses)))


def _apart(gaps: Ints) -> Mask:
    return (gaps < 0) | (gaps >= PAGE)


def _refuse(error: int) -> None:
    if error:
        raise KafkaException(KafkaError(error))


def _end(calls: ctypes.CDLL, client: int, queue: int) -> None:
    calls.rd_kafka_consumer_close(client)
    calls.rd_kafka_queue_destroy(queue)
    calls.rd_kafka_destroy(client)
