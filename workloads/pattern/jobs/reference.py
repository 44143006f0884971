"""The reference job of patterns: one plain process that holds each payment until the watermark has passed it.

    python reference.py CONFIG.json

The watermark is that of the slowest partition: its newest time minus the allowed lateness, when everything that was
polled is read. A payment that is not after the watermark is late: it is dropped, and named in late.jsonl. What waits,
the newest time of each partition, the matches and the offsets are in Redis, in one transaction.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import cast

import msgspec
import redis

from workloads.jobs import plain_process
from workloads.jobs.late_names import add_names, late_path
from workloads.jobs.plain_process import Record, record_of
from workloads.jobs.progress_log import now_ms
from workloads.jobs.redis_results import connect, key_of, updated_key, write_fields
from workloads.jobs.run_config import read_config
from workloads.pattern.jobs.matched import FIRST, OUTPUTS, Card, is_asked, is_small

CARDS = "reference:cards"  # a hash: card -> its state
NEWEST = "reference:newest"  # a hash: partition -> the newest time


class Paid(msgspec.Struct):
    """The fields of an event that the question needs. A record without them is unusable."""

    card: str
    amount: float
    paid_at: int


decode = msgspec.json.Decoder(Paid).decode


class Payments:
    """The payments of all cards, and what Redis does not have yet."""

    def __init__(self, partitions: int, allowed_ms: int, late: Path) -> None:
        self._partitions, self._allowed_ms, self._late = partitions, allowed_ms, late
        self._late.touch()
        self.cards: dict[str, Card] = defaultdict(Card)
        self._newest_ms: dict[int, int] = {}
        self._watermark_ms = 0  # by what Redis has
        self._changed: set[str] = set()
        self._dropped: list[tuple[int, int]] = []
        self.unusable = 0

    def restore(self, client: redis.Redis) -> None:
        """Load the state of the last transaction."""
        for card, text in cast(dict[str, str], client.hgetall(CARDS)).items():
            small_at, small, waiting = json.loads(text)
            self.cards[card] = Card(small_at, small, map(tuple, waiting))
        newest = cast(dict[str, str], client.hgetall(NEWEST))
        self._newest_ms = {int(partition): int(at_ms) for partition, at_ms in newest.items()}
        self._watermark_ms = self._reached()

    def add(self, record: Record) -> None:
        try:
            paid, event = decode(record.value or b""), int(record.key or b"", 16)
        except (msgspec.DecodeError, UnicodeDecodeError, ValueError):
            self.unusable += 1
            return
        self._newest_ms[record.partition] = max(self._newest_ms.get(record.partition, 0), paid.paid_at)
        if not is_asked(paid.amount):
            return
        if paid.paid_at <= self._watermark_ms:
            self._dropped.append((record.partition, record.offset))
            return
        self.cards[paid.card].pay((paid.paid_at, event, is_small(paid.amount)))
        self._changed.add(paid.card)

    def write(self, transaction: redis.client.Pipeline) -> None:
        add_names(self._late, self._dropped)
        self._dropped.clear()
        self._watermark_ms, at_ms = self._reached(), now_ms()
        for name, card in self.cards.items():
            if card.next_ms is None or card.next_ms > self._watermark_ms:
                continue
            self._changed.add(name)
            for first, last in card.fire(self._watermark_ms):
                outputs = key_of(OUTPUTS, name)
                transaction.hincrby(outputs, str(last), 1)
                transaction.hset(updated_key(outputs), str(last), at_ms)
                write_fields(transaction, key_of(FIRST, name), {str(last): first}, at_ms)
        for name in self._changed:
            card = self.cards[name]
            transaction.hset(CARDS, name, json.dumps([card.small_at, card.small, card.waiting]))
        for partition, newest_ms in self._newest_ms.items():
            transaction.hset(NEWEST, str(partition), newest_ms)
        self._changed.clear()

    def _reached(self) -> int:
        """Return the watermark; 0 before all partitions have a payment."""
        if len(self._newest_ms) < self._partitions:
            return 0
        return max(0, min(self._newest_ms.values()) - self._allowed_ms)


def main(config_path: str) -> None:
    config = read_config(config_path)
    payments = Payments(config["partitions"], config["watermark_ms"], late_path(config))
    plain_process.run(config, connect(config), payments, record_of)


if __name__ == "__main__":
    main(sys.argv[1])
