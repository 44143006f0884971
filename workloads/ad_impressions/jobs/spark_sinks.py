"""Four ways to bring a batch's counts into Redis. They differ in what happens when Spark runs a batch again.

`foreachBatch` is at least once: after a crash between write and commit the same batch comes again. `absolute` does
not mind, because it writes totals that stay the same. `fenced` remembers per campaign which batch it has, in the same
step in which it adds. `increment` just adds, and is wrong then: it is here to be found out, and so is
`increment-retrying`, whose connection repeats what it sent: that is wrong without any crash.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, TypeVar

from workloads.ad_impressions.jobs.redis_results import updated_key

Cells = Mapping[str, Mapping[int, int]]  # campaign -> window start in ms -> count
Content = TypeVar("Content")  # of a cell: its count, in checksum mode with sums (spark_summed_sinks.py)


class Redis(Protocol):
    """As much of redis-py as the sinks use."""

    def pipeline(self, transaction: bool = True) -> Any: ...


class Crash(Protocol):
    def at(self, point: str, batch: int) -> None: ...


Sink = Callable[[Redis, int, Cells], None]


def absolute(client: Redis, _batch: int, totals: Cells) -> None:
    """Totals as they stand. Writing them twice changes nothing."""
    pipeline = client.pipeline(transaction=False)
    for campaign, windows in totals.items():
        pipeline.hset(campaign, mapping={str(window): count for window, count in windows.items()})
        _touch(pipeline, campaign, windows)
    pipeline.execute()


def increment(client: Redis, _batch: int, increments: Cells) -> None:
    """Adds, whether or not this batch was added before."""
    pipeline = client.pipeline(transaction=False)
    for campaign, windows in increments.items():
        for window, count in windows.items():
            pipeline.hincrby(campaign, str(window), count)
        _touch(pipeline, campaign, windows)
    pipeline.execute()


# KEYS: counts, times of update, fence. ARGV: batch, time, then window and count in turns. A script runs in one piece.
FENCED_ADD = """
if tonumber(ARGV[1]) <= tonumber(redis.call('GET', KEYS[3]) or '-1') then
  return 0
end
for i = 3, #ARGV, 2 do
  redis.call('HINCRBY', KEYS[1], ARGV[i], ARGV[i + 1])
  redis.call('HSET', KEYS[2], ARGV[i], ARGV[2])
end
redis.call('SET', KEYS[3], ARGV[1])
return 1
"""


def fenced(client: Redis, batch: int, increments: Cells) -> None:
    """Adds, unless the campaign has this batch already: compared and written in one step per campaign."""
    pipeline = client.pipeline(transaction=False)
    for campaign, windows in increments.items():
        pairs = [value for pair in windows.items() for value in pair]
        keys = campaign, updated_key(campaign), fence_key(campaign)
        pipeline.eval(FENCED_ADD, len(keys), *keys, batch, _now_ms(), *pairs)
    pipeline.execute()


def fence_key(campaign: str) -> str:
    return f"fence:{campaign}"


SINKS: Mapping[str, Sink] = {
    "absolute": absolute,
    "fenced": fenced,
    "increment": increment,
    "increment-retrying": increment,
}
# Written through a connection that sends a pipeline again when its answer did not come, as redis.Redis(host=...) does.
RETRYING = frozenset({"increment-retrying"})


def write_batch(
    sink: Callable[[Redis, int, Mapping[str, Mapping[int, Content]]], None],
    client: Redis,
    batch: int,
    rows: Iterable[tuple[str, int, Content]],
    crash: Crash,
) -> None:
    """Write rows of (campaign, window start in ms, count) in two halves, so that a crash can fall between them."""
    cells = by_campaign(rows)
    if len(cells) < 2:  # no halves: not a batch to crash in
        sink(client, batch, cells)
        return
    campaigns = sorted(cells)
    middle = len(campaigns) // 2
    crash.at("c1", batch)
    sink(client, batch, {campaign: cells[campaign] for campaign in campaigns[:middle]})
    crash.at("c2", batch)
    sink(client, batch, {campaign: cells[campaign] for campaign in campaigns[middle:]})
    crash.at("c3", batch)
    crash.at("c4", batch)


def by_campaign(rows: Iterable[tuple[str, int, Content]]) -> Mapping[str, Mapping[int, Content]]:
    cells: dict[str, dict[int, Content]] = defaultdict(dict)
    for campaign, window, content in rows:
        cells[campaign][window] = content
    return cells


def _touch(pipeline: Any, campaign: str, windows: Mapping[int, int]) -> None:
    now_ms = _now_ms()
    pipeline.hset(updated_key(campaign), mapping={str(window): now_ms for window in windows})


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
