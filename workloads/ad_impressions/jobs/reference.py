"""The reference job: one plain process that consumes, counts, and writes counts and offsets in one Redis transaction.

Exactly once by construction: a crash loses the transaction with its offsets or keeps it with them. No framework, so
that it is the baseline which a framework on this machine has to beat.

    python reference.py CONFIG.json
"""

from __future__ import annotations

import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

import msgspec
import redis
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Message, TopicPartition

from workloads.ad_impressions.jobs.ads import read_ads
from workloads.ad_impressions.jobs.id_sums import Sums, add_id, id_of, read, spell, sums_key
from workloads.jobs.orders import read_orders
from workloads.jobs.progress_log import ProgressLog, now_ms
from workloads.jobs.redis_results import connect, updated_key

OFFSETS_KEY = "reference:offsets"
BATCH_FIELD = "batch"
CONSUME_MAX = 20_000
CONSUME_WAIT_S = 0.01  # `consume` waits until it has all or this is over: every event may be that much late
FLUSH_EVERY_S = 0.05
YEAR_10000_MS = 253_402_300_800_000

Cell = tuple[str, int]


class Event(msgspec.Struct):
    """What the query needs of an event. A missing or null field makes it unusable."""

    ad_id: str
    event_type: str
    event_time: str


class IdentifiedEvent(Event):
    """In checksum mode the user id ends with the id of the event."""

    user_id: str


Decode = Callable[[bytes], Event]
decode: Decode = msgspec.json.Decoder(Event).decode
decode_with_user: Decode = msgspec.json.Decoder(IdentifiedEvent).decode


class Counts:
    """Totals per cell, the offsets up to which they hold, and which of both Redis does not know yet."""

    def __init__(self, ads: Mapping[str, str], window_ms: int, checksum: bool = False) -> None:
        self.ads = ads
        self.window_ms = window_ms
        self.sums: dict[Cell, Sums] = {}  # stays empty without checksums
        self.checksum = checksum
        self._decode = decode_with_user if checksum else decode
        self.totals: Counter[Cell] = Counter()
        self.offsets: dict[int, int] = {}
        self.changed: set[Cell] = set()
        self.batch = 0
        self.rows = 0
        self.unusable = 0

    def add(self, messages: Iterable[Message]) -> None:
        for message in messages:
            if error := message.error():
                raise KafkaException(error)
            self._add_value(message.value())
            self.offsets[cast(int, message.partition())] = cast(int, message.offset()) + 1
            self.rows += 1

    def _add_value(self, value: bytes | None) -> None:
        event = parse(value, self._decode)
        if event and event.event_type != "view":
            return
        campaign = self.ads.get(event.ad_id) if event else None
        if event is None or campaign is None or not is_time(event.event_time):
            self.unusable += 1
            return
        event_time_ms = int(event.event_time)
        cell = campaign, event_time_ms - event_time_ms % self.window_ms
        self.totals[cell] += 1
        if isinstance(event, IdentifiedEvent):
            self.sums[cell] = add_id(self.sums.get(cell, (0, 0)), id_of(event.user_id))
        self.changed.add(cell)


def parse(value: bytes | None, decode: Decode = decode) -> Event | None:
    """None for what is not an event. Broken UTF-8 is mended as Spark does it, and judged by what is left."""
    if value is None:
        return None
    try:
        return decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    try:
        return decode(value.decode("utf-8", "replace").encode())
    except msgspec.DecodeError:
        return None


def is_time(text: str) -> bool:
    return text.isascii() and text.isdecimal() and int(text) < YEAR_10000_MS


def restore(client: redis.Redis, counts: Counts) -> None:
    """Totals and offsets as the last transaction left them."""
    saved = cast(dict[str, str], client.hgetall(OFFSETS_KEY))
    counts.batch = int(saved.pop(BATCH_FIELD, 0))
    counts.offsets = {int(partition): int(offset) for partition, offset in saved.items()}
    for campaign in cast(set[str], client.smembers("campaigns")):
        for window, count in client.hgetall(campaign).items():
            counts.totals[campaign, int(window)] = int(count)
        if counts.checksum:
            saved_sums = cast(dict[str, str], client.hgetall(sums_key(campaign)))
            counts.sums |= {(campaign, int(window)): read(sums) for window, sums in saved_sums.items()}


def flush(client: redis.Redis, counts: Counts, progress: ProgressLog) -> None:
    """Write all that changed and the offsets it came from, together or not at all."""
    at_ms = now_ms()
    windows: dict[str, list[int]] = defaultdict(list)
    for campaign, window in counts.changed:
        windows[campaign].append(window)
    transaction = client.pipeline(transaction=True)
    for campaign, starts in windows.items():
        transaction.hset(campaign, mapping={str(start): counts.totals[campaign, start] for start in starts})
        transaction.hset(updated_key(campaign), mapping={str(start): at_ms for start in starts})
        if counts.checksum:
            sums: dict[Any, Any] = {str(start): spell(counts.sums[campaign, start]) for start in starts}
            transaction.hset(sums_key(campaign), mapping=sums)
    offsets: dict[Any, Any] = {str(partition): offset for partition, offset in counts.offsets.items()}
    transaction.hset(OFFSETS_KEY, mapping={**offsets, BATCH_FIELD: counts.batch + 1})
    transaction.execute()
    progress.write(batch=counts.batch, rows=counts.rows, offsets=offsets, unusable=counts.unusable)
    counts.changed.clear()
    counts.rows = 0
    counts.batch += 1


def open_consumer(config: Mapping[str, Any], offsets: Mapping[int, int]) -> Consumer:
    """The queue settings are not a matter of taste: with librdkafka's defaults a fast reader stalls."""
    consumer = Consumer(
        {
            "bootstrap.servers": config["kafka"]["bootstrap"],
            **config["kafka"]["librdkafka"],
            "group.id": f"reference-{config['run']}",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "queued.min.messages": 1_000_000,
            "queued.max.messages.kbytes": 262_144,
            "fetch.queue.backoff.ms": 10,
            "fetch.message.max.bytes": 4_000_000,
        }
    )
    topic = consumer.list_topics(config["topic"], timeout=30).topics[config["topic"]]
    if topic.error:
        raise KafkaException(topic.error)
    consumer.assign(
        [TopicPartition(topic.topic, each, offsets.get(each, OFFSET_BEGINNING)) for each in topic.partitions]
    )
    return consumer


def main(config_path: str) -> None:
    stopped = False

    def stop(*_: object) -> None:
        nonlocal stopped
        stopped = True

    signal.signal(signal.SIGTERM, stop)
    config = read_orders(config_path)
    client = connect(config["redis"])
    progress = ProgressLog(config["progress_path"])
    counts = Counts(read_ads(client), config["window_ms"], config["checksum"])
    restore(client, counts)
    consumer = open_consumer(config, counts.offsets)
    flushed_s = 0.0
    while not stopped:
        counts.add(consumer.consume(CONSUME_MAX, CONSUME_WAIT_S))
        if counts.rows and time.monotonic() - flushed_s >= FLUSH_EVERY_S:
            flush(client, counts, progress)
            flushed_s = time.monotonic()
    if counts.rows:
        flush(client, counts, progress)
    consumer.close()


if __name__ == "__main__":
    main(sys.argv[1])
