"""Call librdkafka's producer through its C interface, which takes a batch of records as one array.

confluent-kafka takes a Python object per record, which costs more than all other work of a load. The library is the one
inside confluent-kafka, and settings are librdkafka's own. harness/kafka_log/batch_consumer.py calls its consumer.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Mapping
from ctypes import POINTER, byref, c_char_p, c_int, c_int32, c_int64, c_size_t, c_void_p
from typing import Any

import numpy as np
from confluent_kafka import KafkaException, cimpl
from numpy.typing import NDArray

from generators.encode import Batch
from workloads.base import NOTHING

PRODUCER, COPY = 0, 2
Signatures = Mapping[str, tuple[Any, ...]]  # the result and the arguments of each C function
PURGE_QUEUE, PURGE_INFLIGHT = 1, 2
WORDS_MOST = 512


class MessageStruct(ctypes.Structure):
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


MESSAGE = np.dtype(MessageStruct)
_OnReport = ctypes.CFUNCTYPE(None, c_void_p, POINTER(MessageStruct), c_void_p)
_OnError = ctypes.CFUNCTYPE(None, c_void_p, c_int, c_char_p, c_void_p)
_OnThrottle = ctypes.CFUNCTYPE(None, c_void_p, c_char_p, c_int32, c_int, c_void_p)


class KafkaRefusedError(KafkaException):
    """An error with librdkafka's message."""


_EVERY_CLIENT: Signatures = {
    "rd_kafka_conf_new": (c_void_p,),
    "rd_kafka_conf_set": (c_int, c_void_p, c_char_p, c_char_p, c_char_p, c_size_t),
    "rd_kafka_new": (c_void_p, c_int, c_void_p, c_char_p, c_size_t),
    "rd_kafka_destroy": (None, c_void_p),
}
_PRODUCER: Signatures = {
    "rd_kafka_conf_set_dr_msg_cb": (None, c_void_p, _OnReport),
    "rd_kafka_conf_set_error_cb": (None, c_void_p, _OnError),
    "rd_kafka_conf_set_throttle_cb": (None, c_void_p, _OnThrottle),
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
}


def library(signatures: Signatures, load: type[ctypes.CDLL] = ctypes.CDLL) -> ctypes.CDLL:
    """Return the library that confluent-kafka has loaded, whatever its file name in the wheel, with these functions.

    Loaded as `ctypes.PyDLL`, its functions keep Python's lock, which suits short ones that are called for each record.
    """
    loaded = load(cimpl.__file__)
    for name, (result, *arguments) in {**_EVERY_CLIENT, **signatures}.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = result, arguments
    return loaded


def configured(library: ctypes.CDLL, settings: Mapping[str, object]) -> int:
    """Return a configuration with librdkafka's own settings."""
    words = ctypes.create_string_buffer(WORDS_MOST)
    conf: int = library.rd_kafka_conf_new()
    for name, value in settings.items():
        if library.rd_kafka_conf_set(conf, name.encode(), _setting(value), words, WORDS_MOST):
            raise KafkaRefusedError(_text(words.value))
    return conf


def started(library: ctypes.CDLL, kind: int, conf: int) -> int:
    """Return a new client. It owns its configuration."""
    words = ctypes.create_string_buffer(WORDS_MOST)
    client: int | None = library.rd_kafka_new(kind, conf, words, WORDS_MOST)
    if not client:
        raise KafkaRefusedError(_text(words.value))
    return client


class Client:
    """A producer of one topic.

    `on_failure` gets each refused or abandoned record: its key, and the number and text of the error. `on_trouble` gets
    errors that concern no record, `on_throttle` the milliseconds for which a quota of the broker stops the client.
    """

    def __init__(
        self,
        topic: str,
        settings: Mapping[str, object],
        on_failure: Callable[[bytes, int, str], None],
        on_trouble: Callable[[str], None],
        on_throttle: Callable[[int], None],
    ) -> None:
        self._library = calls = library(_PRODUCER)
        # C holds no reference to its callbacks.
        troubled = _OnError(lambda _client, _error, words, _private: on_trouble(_text(words)))
        throttled = _OnThrottle(lambda _client, _broker, _number, ms, _private: on_throttle(ms))
        self._callbacks = _OnReport(_reporter(calls, on_failure)), troubled, throttled
        conf = configured(calls, settings)
        calls.rd_kafka_conf_set_dr_msg_cb(conf, self._callbacks[0])
        calls.rd_kafka_conf_set_error_cb(conf, self._callbacks[1])
        calls.rd_kafka_conf_set_throttle_cb(conf, self._callbacks[2])
        self._client = started(calls, PRODUCER, conf)
        self._topic = calls.rd_kafka_topic_new(self._client, topic.encode(), None)
        weakref.finalize(self, _end, calls, self._client, self._topic, self._callbacks)

    def produce(self, partition: int, batch: Batch) -> NDArray[np.int32]:
        """Hand over copies of these records. Return 0 for each, or the number of the error if it was refused."""
        records, values = np.zeros(len(batch), dtype=MESSAGE), batch.values
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
        """Raise KafkaRefusedError if Kafka does not answer, or does not know the topic."""
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
        """Return the number of open records.

        It may be too high, because librdkafka includes reports not yet delivered.
        """
        self.poll()
        return int(self._library.rd_kafka_outq_len(self._client))

    def flush(self, deadline_s: float) -> int:
        """Return how many records are still open at the deadline."""
        self._library.rd_kafka_flush(self._client, int(deadline_s * 1000))
        return self.waiting()

    def purge(self) -> None:
        """Abandon open records; each is reported as failed."""
        self._library.rd_kafka_purge(self._client, PURGE_QUEUE | PURGE_INFLIGHT)


def _reporter(library: ctypes.CDLL, on_failure: Callable[[bytes, int, str], None]) -> Callable[[int, Any, int], None]:
    def reported(_client: int, message: Any, _private: int) -> None:
        told = message.contents
        if told.err:
            key = ctypes.string_at(told.key, told.key_length) if told.key else b""
            on_failure(key, told.err, _text(library.rd_kafka_err2str(told.err)))

    return reported


def _end(library: ctypes.CDLL, client: int, topic: int, _callbacks: object) -> None:
    """Stop the client's threads; records that were not flushed are lost. The callbacks must exist until then."""
    library.rd_kafka_topic_destroy(topic)
    library.rd_kafka_destroy(client)


def _setting(value: object) -> bytes:
    return (str(value).lower() if isinstance(value, bool) else str(value)).encode()


def _text(octets: bytes | None) -> str:
    return (octets or b"").decode("utf-8", "backslashreplace")
