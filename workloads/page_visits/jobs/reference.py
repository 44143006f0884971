"""The reference job of page visits: one plain process that keeps every window's visitors in memory and in Redis.

python reference.py CONFIG.json
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from typing import cast

import msgspec
import redis
from confluent_kafka import Message

from workloads.jobs import plain_process
from workloads.jobs.progress_log import now_ms
from workloads.jobs.redis_results import connect, key_of, write_fields
from workloads.jobs.run_config import read_config
from workloads.page_visits.jobs.visits import LENGTH_MS, VISITORS, VISITS

STATE = "reference:visitors:"  # followed by country and window: a set

Cell = tuple[str, int]  # country, beginning of the window
Record = tuple[bytes | None, int]  # its value, and its timestamp in Kafka


class Visit(msgspec.Struct):
    """The fields of an event that the query needs. A record without them is unusable."""

    visitor: str
    country: str
    seen_at: int


decode = msgspec.json.Decoder(Visit).decode


def record_of(message: Message) -> Record:
    return message.value(), message.timestamp()[1]


class Visits:
    """Visits and visitors of each cell, and the visitors that Redis does not have yet."""

    def __init__(self, step_ms: int, time: str) -> None:
        self._step_ms, self._time = step_ms, time
        self.visits: Counter[Cell] = Counter()
        self.visitors: dict[Cell, set[str]] = defaultdict(set)
        self.added: dict[Cell, set[str]] = defaultdict(set)
        self.unusable = 0

    def add(self, record: Record) -> None:
        value, stamped_ms = record
        try:
            visit = decode(value or b"")
        except (msgspec.DecodeError, UnicodeDecodeError):
            self.unusable += 1
            return
        seen_ms = self._time_of(visit, stamped_ms)
        newest = seen_ms - seen_ms % self._step_ms
        for opens in range(newest, seen_ms - LENGTH_MS, -self._step_ms):
            cell = visit.country, opens
            self.visits[cell] += 1
            new = {visit.visitor} - self.visitors[cell]
            self.visitors[cell] |= new
            self.added[cell] |= new

    def _time_of(self, visit: Visit, stamped_ms: int) -> int:
        """The time that decides a visit's windows. The topic decides if Kafka's timestamp is the client's or the
        broker's.
        """
        if self._time == "event":
            return visit.seen_at
        return now_ms() if self._time == "processing" else stamped_ms

    def restore(self, client: redis.Redis) -> None:
        """Load the state of the last transaction."""
        for key in client.scan_iter(f"{STATE}*", count=5000):
            country, _, opens = key.removeprefix(STATE).rpartition(":")
            cell = country, int(opens)
            self.visitors[cell] = cast(set[str], client.smembers(key))
            self.visits[cell] = int(cast(str, client.hget(key_of(VISITS, country), opens)))

    def write(self, transaction: redis.client.Pipeline) -> None:
        at_ms = now_ms()
        for (country, opens), new in self.added.items():
            if new:
                transaction.sadd(f"{STATE}{country}:{opens}", *new)
            values = {
                VISITS: self.visits[country, opens],
                VISITORS: len(self.visitors[country, opens]),
            }
            for name, value in values.items():
                write_fields(transaction, key_of(name, country), {str(opens): value}, at_ms)
        self.added.clear()


def main(config_path: str, step_ms: int = LENGTH_MS) -> None:
    config = read_config(config_path)
    client = connect(config)
    visits = Visits(step_ms, config["time"])
    plain_process.run(config, client, visits, record_of)


if __name__ == "__main__":
    main(sys.argv[1])
