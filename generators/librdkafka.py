"""librdkafka by its own C interface: a batch of records is handed over, or taken, as arrays.

confluent-kafka has a Python object for each record, which costs more than all else that a load or a reader does. The
library is the one that comes with confluent-kafka, and settings are its own.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Mapping
from ctypes import POINTER, byref, c_char_p, c_int, c_int32, c_int64, c_size_t, c_ssize_t, c_void_p
from dataclasses import dataclass
from typing import Any

import numpy as np
from confluent_kafka import KafkaError, KafkaException, cimpl
from numpy.typing import NDArray

from generators.encode import Batch
from workloads.base import NOTHING, Ints, Values

PRODUCER, CONSUMER, COPY = 0, 1, 2
PURGE_QUEUE, PURGE_INFLIGHT = 1, 2
WORDS_MOST = 512
# Records of one answer of Kafka lie side by side in memory, and what lies between them is copied with them. No whole
# page fits between: all of it is there to be read.
APART_MOST = 4095


class _Message(ctypes.Structure):
    """rd_kafka_message_t"""

    _fields_ = (
        ("err", c_int),
        ("topic", c_void_p),
        ("partition", c_int32),
        ("payload", c_void_p),
        ("length", c_size_t),
        ("key", c_void_p),
        ("key_length", c_size_t),
        ("offset", c_int64),
        ("private", c_void_p),
    )


class _TopicMetadata(ctypes.Structure):
    """rd_kafka_metadata_topic"""

    _fields_ = (("name", c_char_p), ("partitions", c_int), ("partition", c_void_p), ("err", c_int))


class _Metadata(ctypes.Structure):
    """rd_kafka_metadata"""

    _fields_ = (
        ("brokers", c_int),
        ("broker", c_void_p),
        ("topics", c_int),
        ("topic", POINTER(_TopicMetadata)),
        ("from_id", c_int32),
        ("from_name", c_char_p),
    )


_RECORD = np.dtype(_Message)
_OnReport = ctypes.CFUNCTYPE(None, c_void_p, POINTER(_Message), c_void_p)
_OnError = ctypes.CFUNCTYPE(None, c_void_p, c_int, c_char_p, c_void_p)


class KafkaRefusedError(KafkaException):
    """In librdkafka's own words."""


def _library() -> ctypes.CDLL:
    """As confluent-kafka has loaded it, under whatever name its wheel keeps it."""
    library = ctypes.CDLL(cimpl.__file__)
    given: Mapping[str, tuple[Any, ...]] = {
        "rd_kafka_conf_new": (c_void_p,),
        "rd_kafka_conf_set": (c_int, c_void_p, c_char_p, c_char_p, c_char_p, c_size_t),
        "rd_kafka_conf_set_dr_msg_cb": (None, c_void_p, _OnReport),
        "rd_kafka_conf_set_error_cb": (None, c_void_p, _OnError),
        "rd_kafka_new": (c_void_p, c_int, c_void_p, c_char_p, c_size_t),
        "rd_kafka_topic_new": (c_void_p, c_void_p, c_char_p, c_void_p),
        "rd_kafka_produce_batch": (c_int, c_void_p, c_int32, c_int, c_void_p, c_int),
        "rd_kafka_poll": (c_int, c_void_p, c_int),
        "rd_kafka_outq_len": (c_int, c_void_p),
        "rd_kafka_flush": (c_int, c_void_p, c_int),
        "rd_kafka_purge": (c_int, c_void_p, c_int),
        "rd_kafka_metadata": (c_int, c_void_p, c_int, c_void_p, POINTER(POINTER(_Metadata)), c_int),
        "rd_kafka_metadata_destroy": (None, POINTER(_Metadata)),
        "rd_kafka_err2str": (c_char_p, c_int),
        "rd_kafka_topic_destroy": (None, c_void_p),
        "rd_kafka_destroy": (None, c_void_p),
        "rd_kafka_query_watermark_offsets": (c_int, c_void_p, c_char_p, c_int32, c_void_p, c_void_p, c_int),
        "rd_kafka_consume_start": (c_int, c_void_p, c_int32, c_int64),
        "rd_kafka_consume_batch": (c_ssize_t, c_void_p, c_int32, c_int, c_void_p, c_size_t),
        "rd_kafka_consume_stop": (c_int, c_void_p, c_int32),
        "rd_kafka_last_error": (c_int,),
        "rd_kafka_message_timestamp": (c_int64, c_void_p, c_void_p),
        "rd_kafka_message_destroy": (None, c_void_p),
    }
    for name, (result, *arguments) in given.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


class Client:
    """One producer of one topic. `on_failure` is told of each record that was refused or given up: its key, the error's
    number and its words; `on_trouble` of what concerns no record."""

    def __init__(
        self,
        topic: str,
        settings: Mapping[str, object],
        on_failure: Callable[[bytes, int, str], None],
        on_trouble: Callable[[str], None],
    ) -> None:
        self._library = library = _library()
        # C holds no reference to what it calls.
        self._callbacks = _OnReport(_reporter(library, on_failure)), _OnError(_troubler(on_trouble))
        conf = _configured(library, settings)
        library.rd_kafka_conf_set_dr_msg_cb(conf, self._callbacks[0])
        library.rd_kafka_conf_set_error_cb(conf, self._callbacks[1])
        self._client = _made(library, PRODUCER, conf)
        self._topic = library.rd_kafka_topic_new(self._client, topic.encode(), None)
        weakref.finalize(self, _end, library, self._client, self._topic, self._callbacks)

    def produce(self, partition: int, batch: Batch) -> NDArray[np.int32]:
        """Hand over copies of these records; for each, 0 or the number of the error for which it was not taken."""
        records, values = np.zeros(len(batch), dtype=_RECORD), batch.values
        keys = np.ascontiguousarray(batch.keys)
        records["payload"] = np.where(values.lengths == NOTHING, 0, values.octets.ctypes.data + values.begins)
        records["length"] = np.maximum(values.lengths, 0)
        records["key"] = keys.ctypes.data + np.arange(len(batch)) * keys.shape[1]
        records["key_length"] = keys.shape[1]
        taken = self._library.rd_kafka_produce_batch(self._topic, partition, COPY, records.ctypes.data, len(records))
        if taken == len(records):
            return np.zeros(len(records), dtype=np.int32)
        return records["err"].copy()

    def words_of(self, error: int) -> str:
        return _text(self._library.rd_kafka_err2str(error))

    def ask_for_topic(self, deadline_s: float) -> None:
        """Raises KafkaRefusedError where Kafka does not answer, or does not know the topic."""
        found = POINTER(_Metadata)()
        error = self._library.rd_kafka_metadata(self._client, 0, self._topic, byref(found), int(deadline_s * 1000))
        if not error:
            error = found.contents.topic[0].err if found.contents.topics else 0
            self._library.rd_kafka_metadata_destroy(found)
        if error:
            raise KafkaRefusedError(self.words_of(error))

    def poll(self) -> None:
        self._library.rd_kafka_poll(self._client, 0)

    def waiting(self) -> int:
        return int(self._library.rd_kafka_outq_len(self._client))

    def flush(self, deadline_s: float) -> int:
        """How many are still open then."""
        self._library.rd_kafka_flush(self._client, int(deadline_s * 1000))
        return self.waiting()

    def purge(self) -> None:
        """Give up what is open; each is reported as failed."""
        self._library.rd_kafka_purge(self._client, PURGE_QUEUE | PURGE_INFLIGHT)


@dataclass(frozen=True)
class Taken:
    """Records of one partition, in their order."""

    offsets: Ints
    keys: Values
    values: Values
    stamped_ms: Ints  # the time that each has in Kafka; of none, where it was not asked for
    ended_at: int | None  # the end of the partition was met: the offset that comes next

    def __len__(self) -> int:
        return len(self.offsets)

    def below(self, end: int) -> Taken:
        if not len(self) or self.offsets[-1] < end:
            return self
        rows = slice(int(np.searchsorted(self.offsets, end)))
        return Taken(
            self.offsets[rows], self.keys.only(rows), self.values.only(rows), self.stamped_ms[rows], self.ended_at
        )


class Reader:
    """One consumer of one topic, without a group: whoever reads says where."""

    def __init__(self, topic: str, settings: Mapping[str, object]) -> None:
        self._library = library = _library()
        self._name = topic
        self._client = _made(library, CONSUMER, _configured(library, settings))
        self._topic = library.rd_kafka_topic_new(self._client, topic.encode(), None)
        # Without leaving and taking Python's lock for each record.
        self._release = ctypes.PyDLL(cimpl.__file__).rd_kafka_message_destroy
        self._release.restype, self._release.argtypes = None, (c_void_p,)
        self._partition = NOTHING  # that is being read
        self._end = weakref.finalize(self, _end, library, self._client, self._topic, ())

    def bounds(self, partition: int, deadline_s: float) -> tuple[int, int]:
        """The offset of the first record that is there, and that of the next one to come."""
        low, high = c_int64(), c_int64()
        self._refuse(
            self._library.rd_kafka_query_watermark_offsets(
                self._client, self._name.encode(), partition, byref(low), byref(high), int(deadline_s * 1000)
            )
        )
        return low.value, high.value

    def start(self, partition: int, offset: int) -> None:
        """What is read from now on, instead of what was read before."""
        self._stop()
        if self._library.rd_kafka_consume_start(self._topic, partition, offset):
            self._refuse(self._library.rd_kafka_last_error())
        self._partition = partition

    def close(self) -> None:
        self._stop()
        self._end()

    def take(self, most: int, deadline_s: float, *, stamped: bool = False) -> Taken:
        """As many as are there, once there are some. Raises KafkaRefusedError where one of them is an error instead."""
        self._library.rd_kafka_poll(self._client, 0)
        places = np.zeros(most, dtype=np.uintp)
        count = self._library.rd_kafka_consume_batch(
            self._topic, self._partition, int(deadline_s * 1000), places.ctypes.data, most
        )
        if count < 0:
            self._refuse(self._library.rd_kafka_last_error())
        places = places[:count]
        try:
            return self._taken(places, stamped)
        finally:
            for place in places.tolist():
                self._release(place)

    def _taken(self, places: NDArray[np.uintp], stamped: bool) -> Taken:
        records, ended_at = _structures(places), None
        for error in records[records["err"] != 0]:
            if error["err"] != KafkaError._PARTITION_EOF:
                raise KafkaRefusedError(_text(self._library.rd_kafka_err2str(int(error["err"]))))
            ended_at = int(error["offset"])
        if ended_at is not None:
            sound = records["err"] == 0
            records, places = records[sound], places[sound]
        ask = self._library.rd_kafka_message_timestamp
        asked = places.tolist() if stamped else ()
        stamped_ms = np.array([ask(place, None) for place in asked], dtype=np.int64)
        return Taken(records["offset"].copy(), *_octets_of(records), stamped_ms, ended_at)

    def _stop(self) -> None:
        if self._partition != NOTHING:
            self._library.rd_kafka_consume_stop(self._topic, self._partition)
            self._partition = NOTHING

    def _refuse(self, error: int) -> None:
        if error:
            raise KafkaRefusedError(_text(self._library.rd_kafka_err2str(error)))


def _structures(places: NDArray[np.uintp]) -> NDArray[np.void]:
    """Copies of the structures that lie at these places of the memory; nothing between them is touched."""
    if not len(places):
        return np.zeros(0, dtype=_RECORD)
    first, size = int(places.min()), _RECORD.itemsize
    memory = memoryview((ctypes.c_uint8 * (int(places.max()) - first + size)).from_address(first))
    anywhere: NDArray[np.void] = np.ndarray((len(memory) - size + 1,), f"V{size}", memory, 0, (1,))
    records: NDArray[np.void] = anywhere[places - np.uintp(first)].view(_RECORD)
    return records


def _octets_of(records: NDArray[np.void]) -> tuple[Values, Values]:
    """Keys and values. What lies side by side in memory is copied at once, with the little that is between them."""
    places = np.stack((records["key"], records["payload"]), axis=1).ravel()
    lengths = np.stack((records["key_length"], records["length"]), axis=1).ravel().astype(np.int64)
    held = lengths > 0
    starts, sizes = places[held].astype(np.int64), lengths[held]
    ends = starts + sizes
    away = starts[1:] - ends[:-1]
    firsts = np.flatnonzero(np.append(True, (away < 0) | (away > APART_MOST))[: len(starts)])
    lasts = np.append(firsts[1:], len(starts))[: len(firsts)] - 1
    spans = ends[lasts] - starts[firsts]
    moved_to = np.cumsum(spans) - spans
    octets = np.zeros(int(spans.sum()), dtype=np.uint8)
    for into, place, span in zip(moved_to.tolist(), starts[firsts].tolist(), spans.tolist(), strict=True):
        ctypes.memmove(octets.ctypes.data + into, place, span)
    begins = np.zeros(len(places), dtype=np.int64)
    begins[held] = starts + np.repeat(moved_to - starts[firsts], lasts - firsts + 1)
    lengths[places == 0] = NOTHING
    return Values(octets, begins[0::2], lengths[0::2]), Values(octets, begins[1::2], lengths[1::2])


def _reporter(library: ctypes.CDLL, on_failure: Callable[[bytes, int, str], None]) -> Callable[[int, Any, int], None]:
    def reported(_client: int, message: Any, _private: int) -> None:
        told = message.contents
        if told.err:
            key = ctypes.string_at(told.key, told.key_length) if told.key else b""
            on_failure(key, told.err, _text(library.rd_kafka_err2str(told.err)))

    return reported


def _troubler(on_trouble: Callable[[str], None]) -> Callable[[int, int, bytes, int], None]:
    return lambda _client, _error, words, _private: on_trouble(_text(words))


def _configured(library: ctypes.CDLL, settings: Mapping[str, object]) -> int:
    words = ctypes.create_string_buffer(WORDS_MOST)
    conf: int = library.rd_kafka_conf_new()
    for name, value in settings.items():
        if library.rd_kafka_conf_set(conf, name.encode(), _setting(value), words, WORDS_MOST):
            raise KafkaRefusedError(_text(words.value))
    return conf


def _made(library: ctypes.CDLL, kind: int, conf: int) -> int:
    words = ctypes.create_string_buffer(WORDS_MOST)
    client: int | None = library.rd_kafka_new(kind, conf, words, WORDS_MOST)
    if not client:
        raise KafkaRefusedError(_text(words.value))
    return client


def _end(library: ctypes.CDLL, client: int, topic: int, _callbacks: object) -> None:
    """Its threads end, and what was not flushed is lost. What it calls has to be there until then."""
    library.rd_kafka_topic_destroy(topic)
    library.rd_kafka_destroy(client)


def _setting(value: object) -> bytes:
    return (str(value).lower() if isinstance(value, bool) else str(value)).encode()


def _text(octets: bytes | None) -> str:
    return (octets or b"").decode("utf-8", "backslashreplace")
