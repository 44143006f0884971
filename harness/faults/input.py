"""The input family: disorder that is switched on in the middle of a run.

All randomness of a run is used when its tape is sealed, so an input fault changes the tape (`reshape`). The harness
still knows each event that is sent. The proof is read from Kafka: records as the engine gets them, or the ends of
partitions. Nothing has to be undone: the disorder ends with its time.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from confluent_kafka import Consumer, TopicPartition

from harness.faults.base import Kind, option
from harness.faults.run_at_poll import Field, Moment
from harness.faults.strike import CannotStrikeError, Strike, struck_by
from harness.model import INDEX_BITS, FaultSpec, Spell, SpellKind, TapeSpec, UsageError
from harness.services.kafka import end_offsets
from harness.util.durations import NotUnderstoodError, seconds
from harness.util.texts import many

AT_ONCE = 5000
FIND_WITHIN_S = 10.0
BEFORE_MS = 500  # the fault's first record may have been sent before the first poll
# A rate or a silence must last this long to count, or half of the fault's own time if that is less.
SEEN_FOR_MS = 1000.0
# An event dated this far beyond its send time is no clock error.
FUTURE_FROM_SHARE = 0.5
IDLE_PARTITION = 0


@dataclass(frozen=True)
class Record:
    """The parts of a record that these faults need."""

    event: int | None  # None: not one of our keys
    time_ms: int | None  # None: not an event
    ad: str
    partition: int
    sent_ms: int


class Listener:
    """A consumer that reads the topic from a given time on."""

    def __init__(self, field: Field, since_ms: int) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": field.kafka_address.bootstrap,
                **field.kafka_address.librdkafka,
                "group.id": f"{field.topic}-input-fault",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
            }
        )
        partitions = end_offsets(field.kafka_address, field.topic)
        moments = [TopicPartition(field.topic, partition, since_ms) for partition in partitions]
        self._consumer.assign(self._consumer.offsets_for_times(moments, FIND_WITHIN_S))

    def hear(self) -> Iterator[Record]:
        for message in self._consumer.consume(AT_ONCE, 0.01):
            if message.error() is None:
                key, value = message.key(), message.value()
                yield _record(key, value, int(message.partition() or 0), int(message.timestamp()[1]))

    def close(self) -> None:
        self._consumer.close()


def _record(key: bytes | str | None, value: bytes | str | None, partition: int, sent_ms: int) -> Record:
    event, time_ms, ad = None, None, ""
    with suppress(ValueError, TypeError):
        event = int(key or b"", 16)
    with suppress(ValueError, TypeError, KeyError):
        fields = json.loads(value or b"")
        time_ms, ad = int(fields["event_time"]), str(fields["ad_id"])
    return Record(event, time_ms, ad, partition, sent_ms)


class _Input(Strike):
    """A watcher: the tape itself makes the fault happen."""

    colour = "tab:olive"

    def __init__(self, fault: FaultSpec, kind: Kind) -> None:
        self._fault, self._kind = fault, kind
        self.hold_ms = length_ms(fault, kind)
        self.land_within_ms = 30_000.0 + self.hold_ms

    @abstractmethod
    def begin(self, field: Field, now: Moment) -> None:
        """Begin to watch."""

    def inject(self, now: Moment) -> str:
        if now.field is None:
            raise CannotStrikeError("this run has no Kafka to prove the fault with")
        self.begin(now.field, now)
        return f"the tape contains it from {self._fault.when.seconds:g} s on"

    def healed(self, _now: Moment) -> str:
        return "it ended after its time, as the tape contains it"


class _ByRecords(_Input):
    """Proved by records as the engine gets them."""

    def __init__(self, fault: FaultSpec, kind: Kind) -> None:
        super().__init__(fault, kind)
        self._listener: Listener | None = None

    def begin(self, field: Field, now: Moment) -> None:
        self._listener = Listener(field, now.epoch_ms + _from_ms(self._fault) - BEFORE_MS)

    def landed(self, _now: Moment) -> str:
        return self.seen(list(self._listener.hear())) if self._listener else ""

    @abstractmethod
    def seen(self, records: list[Record]) -> str:
        """Return the proof from the records since the last poll, or "" for not yet."""

    def heal(self, _now: Moment) -> None:
        if self._listener:
            self._listener.close()
            self._listener = None


class Future(_ByRecords):
    def seen(self, records: list[Record]) -> str:
        least_ms = FUTURE_FROM_SHARE * seconds(option(self._fault, self._kind, "ahead"), "ahead") * 1000
        for each in records:
            if each.time_ms is not None and each.time_ms - each.sent_ms > least_ms:
                ahead_s = (each.time_ms - each.sent_ms) / 1000
                return f"event {each.event or 0:012x}, read from Kafka, is dated {ahead_s:,.0f} s after its send time"
        return ""


class Poison(_ByRecords):
    """Requires several bad records, because disorder may always send some."""

    def __init__(self, fault: FaultSpec, kind: Kind) -> None:
        super().__init__(fault, kind)
        self._bad = self._all = 0

    def seen(self, records: list[Record]) -> str:
        self._all += len(records)
        self._bad += sum(each.time_ms is None for each in records)
        if self._bad < 5:
            return ""
        return f"{self._bad} of {many(self._all, 'record')} read from Kafka since then are not events"


class Duplicates(_ByRecords):
    def __init__(self, fault: FaultSpec, kind: Kind) -> None:
        super().__init__(fault, kind)
        self._times: Counter[int] = Counter()

    def seen(self, records: list[Record]) -> str:
        self._times.update(each.event for each in records if each.event is not None)
        again = [event for event, times in self._times.items() if times > 1]
        if len(again) < 5:
            return ""
        return (
            f"{many(len(again), 'event was', 'events were')} read from Kafka more than once since, "
            f"the first {again[0]:012x}"
        )


class Skew(_ByRecords):
    """Compares the most frequent ad with the planned share."""

    def __init__(self, fault: FaultSpec, kind: Kind) -> None:
        super().__init__(fault, kind)
        self._ads: Counter[str] = Counter()

    def seen(self, records: list[Record]) -> str:
        self._ads.update(each.ad for each in records if each.ad)
        total = self._ads.total()
        if total < 500:
            return ""
        ad, count = self._ads.most_common(1)[0]
        if count < share(self._fault, self._kind) / 2 * total:
            self._ads.clear()  # counted before it began
            return ""
        return f"{count / total:.0%} of {many(total, 'record')} read from Kafka since then refer to ad {ad[:8]}"


class Silent(_ByRecords):
    """Looks for servers that were silent for a while in which others sent, and then came back."""

    def __init__(self, fault: FaultSpec, kind: Kind) -> None:
        super().__init__(fault, kind)
        self._heard_ms: dict[int, int] = {}

    def seen(self, records: list[Record]) -> str:
        for each in records:
            if each.event is None:
                continue
            server = each.event >> INDEX_BITS
            before_ms = self._heard_ms.get(server, each.sent_ms)
            self._heard_ms[server] = max(before_ms, each.sent_ms)
            if each.sent_ms - before_ms >= 0.8 * self.hold_ms:
                silence_s = (each.sent_ms - before_ms) / 1000
                return f"ad server {server} sent nothing to Kafka for {silence_s:.1f} s, then it sent again"
        return ""

    def holds(self, _now: Moment, _landed_ms: int) -> bool:
        return False  # its return was the proof


@dataclass(frozen=True)
class Ends:
    """The end offsets of the partitions at one moment."""

    at_ms: int
    of: dict[int, int]

    @property
    def total(self) -> int:
        return sum(self.of.values())


class _ByEnds(_Input):
    """Proved by the end offsets of partitions; no record is read."""

    def __init__(self, fault: FaultSpec, kind: Kind) -> None:
        super().__init__(fault, kind)
        self._first: Ends | None = None
        self._before: Ends | None = None

        self._usual_per_s = 0.0

    def begin(self, field: Field, now: Moment) -> None:
        self._before = _ends(field, now)
        self._usual_per_s = (self._before.total - now.before) / max(1.0, (now.now_ms - now.epoch_ms) / 1000)

    def landed(self, now: Moment) -> str:
        assert now.field
        needed_ms = min(SEEN_FOR_MS, self.hold_ms / 2)
        if self._first is None:
            if self._before and now.now_ms - self._before.at_ms >= min(500.0, self.hold_ms / 4):  # records in transit
                self._first = _ends(now.field, now)
            return ""
        if now.now_ms - self._first.at_ms < needed_ms:
            return ""
        newest = _ends(now.field, now)
        proof = self.moved(self._first, newest)
        self._first = newest
        return proof

    @abstractmethod
    def moved(self, first: Ends, newest: Ends) -> str:
        """Return the proof from the ends at two moments."""


class Burst(_ByEnds):
    """Compares the rate with the mean rate before the burst."""

    def moved(self, first: Ends, newest: Ends) -> str:
        usual = self._usual_per_s
        rate = (newest.total - first.total) / ((newest.at_ms - first.at_ms) / 1000)
        if rate < usual * max(1.3, times(self._fault, self._kind) / 2):
            return ""
        return f"Kafka received {rate:,.0f} records/s, {rate / usual:.1f} times as many as before"


class IdlePartition(_ByEnds):
    def moved(self, first: Ends, newest: Ends) -> str:
        others = newest.total - first.total
        if newest.of[IDLE_PARTITION] != first.of[IDLE_PARTITION] or not others:
            return ""
        span_s = (newest.at_ms - first.at_ms) / 1000
        return f"partition {IDLE_PARTITION} received no record for {span_s:.1f} s, while the others received {others:,}"


def _ends(field: Field, now: Moment) -> Ends:
    return Ends(now.now_ms, end_offsets(field.kafka_address, field.topic))


# Changes of the tape.


def length_ms(fault: FaultSpec, kind: Kind) -> float:
    return seconds(option(fault, kind, "for"), "for") * 1000 if "for" in kind.options else 0.0


def share(fault: FaultSpec, kind: Kind) -> float:
    text = option(fault, kind, "share")
    number = float(text[:-1]) / 100 if text.endswith("%") and text[:-1].replace(".", "", 1).isdecimal() else 0.0
    if not 0 < number <= 1:
        raise NotUnderstoodError(f"share = {text!r} is not a share above 0% and up to 100%, such as 5%")
    return number


def times(fault: FaultSpec, kind: Kind) -> float:
    text = option(fault, kind, "times")
    if not text.isdecimal() or int(text) < 2:
        raise NotUnderstoodError(f"times = {text!r} is not a whole number of at least 2")
    return float(text)


def _from_ms(fault: FaultSpec) -> int:
    return round(fault.when.seconds * 1000)


def _spell(kind: SpellKind) -> Callable[[TapeSpec, FaultSpec, Kind], TapeSpec]:
    def reshape(tape: TapeSpec, fault: FaultSpec, of: Kind) -> TapeSpec:
        spell = _stretch(kind, fault, of)
        if "share" in of.options:
            spell = replace(spell, share=share(fault, of))
        if "ahead" in of.options:
            ahead_ms = round(seconds(option(fault, of, "ahead"), "ahead") * 1000)
            spell = replace(spell, until_ms=spell.from_ms + 1, ahead_ms=ahead_ms)
        return _with(tape, spell)

    return reshape


def _silence(tape: TapeSpec, fault: FaultSpec, of: Kind) -> TapeSpec:
    if tape.disorder.silent_servers or any(spell.kind == "silent" for spell in tape.spells):
        raise UsageError(
            f"{fault.text}: the disorder or another fault of this run already silences servers. Use only one of them."
        )
    count = option(fault, of, "servers")
    if not count.isdecimal() or not 0 < int(count) < tape.servers:
        raise NotUnderstoodError(
            f"servers = {count!r} is not a number from 1 to {tape.servers - 1}: at least one must keep sending"
        )
    return _with(tape, replace(_stretch("silent", fault, of), servers=int(count)))


def _burst(tape: TapeSpec, fault: FaultSpec, of: Kind) -> TapeSpec:
    return _with(tape, replace(_stretch("burst", fault, of), factor=times(fault, of)))


def _stretch(kind: SpellKind, fault: FaultSpec, of: Kind) -> Spell:
    begin_ms = _from_ms(fault)
    return Spell(kind, begin_ms, begin_ms + round(length_ms(fault, of)))


def _with(tape: TapeSpec, spell: Spell) -> TapeSpec:
    return replace(tape, spells=(*tape.spells, spell))


def _kind(
    name: str,
    what: str,
    correct: str,
    strike: Callable[[FaultSpec, Kind], Strike],
    reshape: Callable[[TapeSpec, FaultSpec, Kind], TapeSpec],
    **options: str,
) -> Kind:
    make = struck_by(lambda fault, _: strike(fault, _KIND[fault.action]))
    return Kind(
        f"input-{name}",
        what,
        correct,
        make,
        needs="a time within the load, such as @t>=10s",
        options={"for" if key == "for_" else key: value for key, value in options.items()},
        moments=("time",),
        reshape=reshape,
    )


KINDS = (
    _kind(
        "silent",
        "some ad servers stop sending, and then send their whole backlog at once",
        "counts all of it if the silence is shorter than the allowed lateness; else accounts for each drop",
        Silent,
        _silence,
        servers="2",
        for_="5s",
    ),
    _kind(
        "future",
        "one event is dated far in the future",
        "does not drop the events after it; if its watermark follows it, it reports and accounts for each drop",
        Future,
        _spell("future"),
        ahead="60m",
    ),
    _kind(
        "poison",
        "a share of the records are not events: they are broken, truncated, empty, or of unknown ads",
        "skips them and goes on; no count changes",
        Poison,
        _spell("poison"),
        share="5%",
        for_="5s",
    ),
    _kind(
        "burst",
        "the offered rate is several times as high for a while",
        "falls behind, catches up, and loses nothing",
        Burst,
        _burst,
        times="5",
        for_="3s",
    ),
    _kind(
        "idle-partition",
        "one partition receives nothing for a while; the next one receives its share",
        "goes on with the others, and does not wait forever for the idle one",
        IdlePartition,
        _spell("idle-partition"),
        for_="10s",
    ),
    _kind(
        "skew",
        "most events refer to one ad",
        "counts all of them in their cell",
        Skew,
        _spell("skew"),
        share="90%",
        for_="10s",
    ),
    _kind(
        "duplicates",
        "a share of the records is sent twice with the same id, as by a producer that retries",
        "counts each record of the log once",
        Duplicates,
        _spell("duplicates"),
        share="5%",
        for_="5s",
    ),
)
_KIND = {kind.name: kind for kind in KINDS}
