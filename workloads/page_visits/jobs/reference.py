"""The reference job of page visits: one plain process that keeps every window's visitors in memory, and in Redis.

python reference.py CONFIG.json
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from typing import Any, cast

import msgspec
import redis

from workloads.jobs import plain_process
from workloads.jobs.orders import read_orders
from workloads.jobs.progress_log import now_ms
from workloads.jobs.redis_results import connect, updated_key
from workloads.page_visits.jobs.visits import LENGTH_MS, VISITORS, VISITS, key_of

STATE = "reference:visitors:"  # then country and window: a set

Cell = tuple[str, int]  # country, beginning of the window


class Visit(msgspec.Struct):
    """What the query needs of an event. Without it a record is unusable."""

    visitor: str
    country: str
    seen_at: int


decode = msgspec.json.Decoder(Visit).decode


class Visits:
    """Visits and visitors of each cell, and what of both Redis does not know yet."""

    def __init__(self, step_ms: int) -> None:
        self._step_ms = step_ms
        self.visits: Counter[Cell] = Counter()
        self.visitors: dict[Cell, set[str]] = defaultdict(set)
        self.added: dict[Cell, set[str]] = defaultdict(set)
        self.unusable = 0

    def add(self, value: bytes | None) -> None:
        try:
            visit = decode(value or b"")
        except (msgspec.DecodeError, UnicodeDecodeError):
            self.unusable += 1
            return
        newest = visit.seen_at - visit.seen_at % self._step_ms
        for opens in range(newest, visit.seen_at - LENGTH_MS, -self._step_ms):
            cell = visit.country, opens
            self.visits[cell] += 1
            new = {visit.visitor} - self.visitors[cell]
            self.visitors[cell] |= new
            self.added[cell] |= new

    def restore(self, client: redis.Redis) -> None:
        """As the last transaction left them."""
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
            values: dict[str, Any] = {
                VISITS: self.visits[country, opens],
                VISITORS: len(self.visitors[country, opens]),
            }
            for name, value in values.items():
                key = key_of(name, country)
                transaction.hset(key, str(opens), value)
                transaction.hset(updated_key(key), str(opens), at_ms)
        self.added.clear()


def main(config_path: str, step_ms: int = LENGTH_MS) -> None:
    config = read_orders(config_path)
    client = connect(config["redis"])
    visits = Visits(step_ms)
    visits.restore(client)
    plain_process.run(config, client, visits)


if __name__ == "__main__":
    main(sys.argv[1])
