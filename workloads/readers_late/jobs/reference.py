"""The reference job: one plain process that keeps the windows of each section in memory and in Redis.

    python reference.py CONFIG.json

Each partition has a watermark of its own: its newest read minus the allowed lateness. A read is judged by that of its
partition, and a window is over when all of them have passed its end. So the log alone decides which reads are late, at
whatever speed it is read, and a job that was killed comes to the same. Each late read is named in late.jsonl, with the
watermark.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, cast

import msgspec
import redis

from workloads.jobs import plain_process
from workloads.jobs.late_names import add_names, late_path
from workloads.jobs.plain_process import Record, record_of
from workloads.jobs.progress_log import now_ms
from workloads.jobs.redis_results import connect, write_fields
from workloads.jobs.run_config import read_config
from workloads.readers_late.jobs.policies import Counts, Windows, results

CLOCKS = "reference:clocks"  # by partition: its newest read
STATE = "reference:windows:"  # followed by the section: windows by their starts
NEVER_MS = -(1 << 62)  # a watermark that has passed nothing


class Read(msgspec.Struct):
    """The fields of an event that the query needs. A record without them is unusable."""

    section: str
    read_at: int


decode = msgspec.json.Decoder(Read).decode


class Sections:
    """The windows of all sections, and what Redis does not have yet."""

    def __init__(self, partitions: int, lateness_ms: int, late: Path) -> None:
        self._lateness_ms, self._late = lateness_ms, late
        self._late.touch()
        self._newest_ms = dict.fromkeys(range(partitions), NEVER_MS)
        self._of: dict[str, Windows] = {}
        self._named: list[dict[str, int]] = []  # late reads
        self.unusable = 0

    def add(self, record: Record) -> None:
        partition, offset, _, value = record
        try:
            read = decode(value or b"")
        except (msgspec.DecodeError, UnicodeDecodeError):
            self.unusable += 1
            return
        watermark_ms = self._newest_ms[partition] - self._lateness_ms
        windows = self._of.setdefault(read.section, Windows({}, self._watermark_ms))
        if not windows.add(read.read_at, watermark_ms):
            self._named.append({"partition": partition, "offset": offset, "watermark_ms": watermark_ms})
        self._newest_ms[partition] = max(self._newest_ms[partition], read.read_at)

    def restore(self, client: redis.Redis) -> None:
        """Load the state of the last transaction."""
        clocks = cast(dict[str, str], client.hgetall(CLOCKS))
        self._newest_ms |= {int(partition): int(newest) for partition, newest in clocks.items()}
        for key in client.scan_iter(f"{STATE}*", count=5000):
            kept = cast(dict[str, str], client.hgetall(key))
            counts = {int(opens): Counts(*map(int, text.split())) for opens, text in kept.items()}
            self._of[key.removeprefix(STATE)] = Windows(counts, self._watermark_ms)

    def write(self, transaction: redis.client.Pipeline) -> None:
        add_names(self._late, self._named)
        self._named.clear()
        at_ms, watermark_ms = now_ms(), self._watermark_ms
        for section, windows in self._of.items():
            changed: dict[Any, Any] = {
                str(opens): " ".join(map(str, windows.counts[opens])) for opens in windows.changed
            }
            if changed:
                transaction.hset(f"{STATE}{section}", mapping=changed)
            for opens, counts in windows.emit(watermark_ms).items():
                for key, count in results(section, counts).items():
                    write_fields(transaction, key, {str(opens): count}, at_ms)
            if gone := windows.forget(watermark_ms):
                transaction.hdel(f"{STATE}{section}", *map(str, gone))
        transaction.hset(CLOCKS, mapping={str(each): newest for each, newest in self._newest_ms.items()})

    @property
    def _watermark_ms(self) -> int:
        return min(self._newest_ms.values()) - self._lateness_ms


def main(config_path: str) -> None:
    config = read_config(config_path)
    sections = Sections(config["partitions"], config["watermark_ms"], late_path(config))
    plain_process.run(config, connect(config), sections, record_of)


if __name__ == "__main__":
    main(sys.argv[1])
