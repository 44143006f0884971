"""The reference job: one plain process that keeps the panes of each reader's articles in memory and in Redis.

python reference.py CONFIG.json
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from typing import cast

import msgspec
import redis

from workloads.jobs import plain_process
from workloads.jobs.progress_log import now_ms
from workloads.jobs.reads import ARTICLES, MINUTE, READS, Reads, Sliding
from workloads.jobs.redis_results import connect, key_of, write_fields
from workloads.jobs.run_config import read_config

STATE = "reference:read:"  # followed by the reader: a set of panes and articles


class Read(msgspec.Struct):
    """The fields of an event that the query needs. A record without them is unusable."""

    reader: str
    article: str
    read_at: int


decode = msgspec.json.Decoder(Read).decode


class Readers:
    """The reads of all readers, and what Redis does not have yet."""

    def __init__(self, windows: Sliding = MINUTE) -> None:
        self._windows = windows
        self.of: dict[str, Reads] = defaultdict(lambda: Reads(windows))
        self.added: dict[str, list[str]] = defaultdict(list)
        self.changed: dict[str, set[int]] = defaultdict(set)  # panes
        self.unusable = 0

    def add(self, value: bytes | None) -> None:
        try:
            read = decode(value or b"")
        except (msgspec.DecodeError, UnicodeDecodeError):
            self.unusable += 1
            return
        pane = self._windows.pane_of(read.read_at)
        if self.of[read.reader].add(read.article, pane):
            self.added[read.reader].append(f"{pane}:{read.article}")
        self.changed[read.reader].add(pane)

    def restore(self, client: redis.Redis) -> None:
        """Load the state of the last transaction."""
        for key in client.scan_iter(f"{STATE}*", count=5000):
            reader = key.removeprefix(STATE)
            for member in cast(set[str], client.smembers(key)):
                pane, _, article = member.partition(":")
                self.of[reader].add(article, int(pane))
            reads = cast(dict[str, str], client.hgetall(key_of(READS, reader)))  # how often, which the panes lack
            self.of[reader].reads = Counter({int(opens): int(count) for opens, count in reads.items()})

    def write(self, transaction: redis.client.Pipeline) -> None:
        at_ms = now_ms()
        for reader, panes in self.changed.items():
            if new := self.added[reader]:
                transaction.sadd(f"{STATE}{reader}", *new)
            opened = {opens for pane in panes for opens in self._windows.holding(pane)}
            for name, counts in ((READS, self.of[reader].reads), (ARTICLES, self.of[reader].articles)):
                fields = {str(opens): counts[opens] for opens in opened}
                write_fields(transaction, key_of(name, reader), fields, at_ms)
        self.added.clear()
        self.changed.clear()


def main(config_path: str, windows: Sliding = MINUTE) -> None:
    config = read_config(config_path)
    plain_process.run(config, connect(config), Readers(windows), plain_process.value_of)


if __name__ == "__main__":
    main(sys.argv[1])
