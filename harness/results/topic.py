"""`kafka:TOPIC`: a record per change, a JSON object with campaign, window and count. The last record of a cell counts.

A record may name the keys and values of a question instead, `{"city": "Ulm", "end": 1767225600000, "trips": 3, "max":
950}`. Other fields are ignored.

A record may be an output for one event, `{"campaign": "de", "window": 17, "output": {"orders": 3}}`, where `window` is
the number of the event. It sets the values of the event, here `orders:de`, to a number or to null. `outputs:de` counts
such records, and a row of its own holds the first one's place among all outputs.

The topic is created for the run. Its name is `results_topic` in the engine's run config.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from confluent_kafka import Consumer, KafkaError, TopicPartition

from harness.engines.template import VALUE, WINDOW, numbers_of
from harness.model import HarnessError, TapeSpec
from harness.results.base import UPDATED, Observer, PolledStore, ResultLocation, window_start
from harness.results.columns import OUTPUTS
from harness.results.redis_scan import HASH, LEFT, NO_RESULT, Row, strangers
from harness.results.sampler import PlainObserver, Polled
from harness.services import made
from harness.services.kafka import stable_offsets
from harness.util.integers import parse_int64
from workloads.base import NULL

T = TypeVar("T")
Fields: TypeAlias = dict[str, dict[str, T]]  # by key, and by window or event

POLL_S = 0.2
STALL_S = 30.0
CHUNK = 5000


class KafkaTopic(PolledStore):
    """Continues reading at its last offsets, and keeps the last value of each cell."""

    form = "kafka:TOPIC"
    looks_for = "JSON objects with `campaign`, `window` and `count`"
    service = "kafka"
    prints = "the topic of the results holds records such as"
    when_empty = "the topic of the results is empty; its name is `results_topic` in the job's config"

    def __init__(self, location: ResultLocation) -> None:
        super().__init__(location)
        self._cells = Fields[str]()
        self._changed = Fields[str]()
        self._left = Fields[int]()  # outputs, in the order in which they left
        self._outputs = self._changes = 0  # distinct outputs, and changes of cells
        self._news: Fields[str] | None = None  # what changed since the poll before; None: it is not polled
        self._strays: list[Row] = []
        self._at: dict[int, int] = {}
        self._consumer: Consumer | None = None
        self._named = Named(
            location.keys, location.parts, numbers_of(location.number, has_length=bool(location.length_ms))
        )

    def prepare(self) -> None:
        made.create(self._location.kafka, self._location.topic, 1)

    def rows(self) -> list[Row]:
        self._read_on()
        cells = [Row(key, window, count, HASH) for key, window, count in entries(self._cells)]
        times = [Row(UPDATED + key, window, at, HASH) for key, window, at in entries(self._changed)]
        positions = [Row(LEFT + key, event, str(position), HASH) for key, event, position in entries(self._left)]
        return [*cells, *times, *positions, *self._strays]

    def snapshot(self) -> object:
        self._read_on()
        return self._changes

    def observer(self, tape: TapeSpec) -> Observer | None:
        """Each poll has only what changed: a topic may hold an output for each of millions of events."""
        location, bookkeeping = self._location, self.bookkeeping
        known, news = frozenset(location.keys), Fields[str]()
        self._news = news

        def poll(names: Sequence[str]) -> Iterator[Polled]:
            self._read_on()
            replies = [[text for pair in news.get(name, {}).items() for text in pair] for name in names]
            news.clear()
            yield Polled(replies, strangers(self._cells, known, bookkeeping), whole=False)

        return PlainObserver(poll, self.close, location.keys, tape, location.clock)

    def close(self) -> None:
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    def _read_on(self) -> None:
        ends = stable_offsets(self._location.kafka, self._location.topic)  # a reader gets no records beyond them yet
        consumer = self._opened(ends)
        idle_s = 0.0
        while any(self._at.get(partition, 0) < end for partition, end in ends.items()):
            messages = consumer.consume(CHUNK, POLL_S)
            idle_s = 0.0 if messages else idle_s + POLL_S
            if idle_s > STALL_S:
                where = f"at {self._at} of {ends}"
                raise HarnessError(f"Reading results in {self._location.topic} stalled for {STALL_S:.0f} s {where}.")
            for message in messages:
                self._take(message)

    def _opened(self, ends: Iterable[int]) -> Consumer:
        if self._consumer is None:
            self._consumer = Consumer(
                {
                    **self._location.kafka.librdkafka,
                    "bootstrap.servers": self._location.kafka.bootstrap,
                    "group.id": "streamgauge-results",
                    "enable.auto.commit": False,
                    "isolation.level": "read_committed",
                    "enable.partition.eof": True,
                }
            )
            self._consumer.assign([TopicPartition(self._location.topic, each, self._at.get(each, 0)) for each in ends])
        return self._consumer

    def _take(self, message: Any) -> None:
        if error := message.error():
            if error.code() != KafkaError._PARTITION_EOF:
                raise HarnessError(f"Results in topic {self._location.topic} can't be read: {error.str()}.")
            self._at[message.partition()] = message.offset()
            return
        self._at[message.partition()] = message.offset() + 1
        value = message.value() or b""
        at_ms = str(message.timestamp()[1])
        if output := output_of(value):
            self._put_out(*output, at_ms)
            return
        told = [(*found, WINDOW)] if (found := cell_of(value)) else self._named.cells(value)
        if not told:
            where = f"{self._location.topic}[{message.partition()}@{message.offset()}]"
            self._strays.append(Row(where, "", repr(value), NO_RESULT))
        for key, window, count, name in told:
            self._set(key, window_start(window, self._location, name), count, at_ms)

    def _put_out(self, key: str, event: str, values: Mapping[str, str], at_ms: str) -> None:
        counts = f"{OUTPUTS}:{key}"
        left = self._left.setdefault(counts, {})
        if event not in left:
            left[event] = self._outputs
            self._outputs += 1
        times = int(self._cells.get(counts, {}).get(event, 0)) + 1
        for name, value in {**values, OUTPUTS: str(times)}.items():
            self._set(f"{name}:{key}", event, value, at_ms)

    def _set(self, key: str, field: str, value: str, at_ms: str) -> None:
        fields = self._cells.setdefault(key, {})
        if fields.get(field) != value:
            fields[field] = value
            self._changes += 1
            if self._news is not None:
                self._news.setdefault(key, {})[field] = value
        if self._news is None:
            self._changed.setdefault(key, {})[field] = at_ms


def entries(fields: Fields[T]) -> Iterator[tuple[str, str, T]]:
    return ((key, field, value) for key, values in fields.items() for field, value in values.items())


class Named:
    """A parser of records that name the keys of a question, a window and values, as its declaration does."""

    def __init__(self, keys: Sequence[str], parts: Sequence[Mapping[str, str]], numbers: Sequence[str]) -> None:
        """`numbers`: the names that a record may use for the whole number of a cell; empty if cells have none."""
        self._texts = [name for name in (parts[0] if parts else {}) if name != VALUE]
        values = {each[VALUE] for each in parts}  # a name in here is a value and no window
        self._numbers = [name for name in numbers if name not in values]
        self._keys: dict[tuple[str, ...], dict[str, str]] = {}  # by these texts: the key of each value
        for key, each in zip(keys, parts, strict=False):
            self._keys.setdefault(tuple(each[name] for name in self._texts), {})[each[VALUE]] = key

    def cells(self, value: bytes) -> list[tuple[str, str, str, str]]:
        """Return key, window, value and the window's name for each cell in a record; nothing if one is invalid."""
        try:
            told = _JSON.decode(value.decode())
            keys = self._keys.get(tuple(told[name] for name in self._texts), {})
            numbers = {name: _text_of(told[name]) for name in self._numbers if name in told}
        except (ValueError, KeyError, TypeError, RecursionError):
            return []
        values = {key: _text_of(told[name]) for name, key in keys.items() if name in told}
        if not self._numbers:
            numbers = {WINDOW: "0"}
        if len(numbers) != 1 or None in (*numbers.values(), *values.values()):
            return []
        ((name, window),) = numbers.items()
        return [(key, window or "", text or "", name) for key, text in values.items()]


def cell_of(value: bytes) -> tuple[str, str, str] | None:
    """Return key, window and count of a record; None if it has another form.

    Numbers are whole numbers of JSON, or texts in the one spelling that a count has.
    """
    try:
        told = _JSON.decode(value.decode())
        key, numbers = told["campaign"], [told["window"], told["count"]]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    window, count = map(_text_of, numbers)
    if window is None or count is None or not isinstance(key, str):
        return None
    return key.encode(errors="backslashreplace").decode(), window, count


def _text_of(number: object) -> str | None:
    return str(number) if type(number) in (int, str) and parse_int64(str(number)) is not None else None


def output_of(value: bytes) -> tuple[str, str, dict[str, str]] | None:
    """Return key and number of an event, and its values; None if the record is no output."""
    try:
        told = _JSON.decode(value.decode())
        key, event, values = told["campaign"], told["window"], told["output"]
        numbers = {name: NULL if number is None else number for name, number in values.items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    whole_ones = all(type(number) is int for number in (event, *numbers.values()))
    if not whole_ones or not isinstance(key, str) or OUTPUTS in numbers:
        return None
    return key, str(event), {name: str(number) for name, number in numbers.items()}


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse an object that repeats a name, because it is ambiguous."""
    if len(told := dict(pairs)) < len(pairs):
        raise ValueError
    return told


_JSON = json.JSONDecoder(object_pairs_hook=_each_once)  # json.loads would make one for each record
