"""Four sinks that write a batch's counts into Redis. They differ when Spark runs a batch again.

`foreachBatch` is at least once: after a crash between write and commit the same batch is run again. `absolute` is safe,
because it writes totals that stay the same. `fenced` stores per key the last batch, in the same step in which it adds.
`increment` only adds and is wrong after a replay: the harness must find that. The harness must also find
`increment-retrying`, whose connection repeats commands: that is wrong without any crash.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, TypeVar

from workloads.jobs.progress_log import now_ms
from workloads.jobs.redis_results import updated_key

Cells = Mapping[str, Mapping[int, int]]  # key -> window start in ms -> count
Content = TypeVar("Content")  # content of a cell: its count, in checksum mode with sums (spark_summed_sinks.py)


class Redis(Protocol):
    """The part of redis-py that the sinks use."""

    def pipeline(self, transaction: bool = True) -> Any: ...


class Crash(Protocol):
    def at(self, point: str, batch: int) -> None: ...


Sink = Callable[[Redis, int, Cells], None]


def absolute(client: Redis, _batch: int, totals: Cells) -> None:
    """Write totals. A second write changes nothing."""
    pipeline = client.pipeline(transaction=False)
    for key, windows in totals.items():
        pipeline.hset(key, mapping={str(window): count for window, count in windows.items()})
        _touch(pipeline, key, windows)
    pipeline.execute()


def increment(client: Redis, _batch: int, increments: Cells) -> None:
    """Add counts, even if this batch was added before."""
    pipeline = client.pipeline(transaction=False)
    for key, windows in increments.items():
        for window, count in windows.items():
            pipeline.hincrby(key, str(window), count)
        _touch(pipeline, key, windows)
    pipeline.execute()


# KEYS: counts, times of update, fence. ARGV: batch, time, then window and count in turns. A script is atomic.
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
    """Add counts unless the key already has this batch. Redis compares and writes in one step per key."""
    pipeline = client.pipeline(transaction=False)
    for key, windows in increments.items():
        pairs = [value for pair in windows.items() for value in pair]
        keys = key, updated_key(key), fence_key(key)
        pipeline.eval(FENCED_ADD, len(keys), *keys, batch, now_ms(), *pairs)
    pipeline.execute()


def fence_key(key: str) -> str:
    return f"fence:{key}"


SINKS: Mapping[str, Sink] = {
    "absolute": absolute,
    "fenced": fenced,
    "increment": increment,
    "increment-retrying": increment,
}
# Their connection sends a pipeline again if its answer was lost, as redis.Redis(host=...) does.
RETRYING = frozenset({"increment-retrying"})


def write_batch(
    sink: Callable[[Redis, int, Mapping[str, Mapping[int, Content]]], None],
    client: Redis,
    batch: int,
    rows: Iterable[tuple[str, int, Content]],
    crash: Crash,
) -> None:
    """Write rows of (key, window start in ms, count) in two halves, so that a crash can hit between them."""
    cells = by_key(rows)
    if len(cells) < 2:  # there are no halves, so no crash points
        sink(client, batch, cells)
        return
    keys = sorted(cells)
    middle = len(keys) // 2
    crash.at("c1", batch)
    sink(client, batch, {key: cells[key] for key in keys[:middle]})
    crash.at("c2", batch)
    sink(client, batch, {key: cells[key] for key in keys[middle:]})
    crash.at("c3", batch)
    crash.at("c4", batch)


def by_key(rows: Iterable[tuple[str, int, Content]]) -> Mapping[str, Mapping[int, Content]]:
    cells: dict[str, dict[int, Content]] = defaultdict(dict)
    for key, window, content in rows:
        cells[key][window] = content
    return cells


def _touch(pipeline: Any, key: str, windows: Mapping[int, int]) -> None:
    at_ms = now_ms()
    pipeline.hset(updated_key(key), mapping={str(window): at_ms for window in windows})
