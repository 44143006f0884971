"""The sinks of redis_sinks.py in checksum mode. Each writes the sums of a cell in the same step as its count, and is as
right or wrong as its plain counterpart when a batch runs again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from workloads.ad_impressions.jobs.id_sums import ID_RANGE, PRIME, spell, sums_key
from workloads.jobs.progress_log import now_ms
from workloads.jobs.redis_results import updated_key
from workloads.jobs.redis_sinks import Redis, fence_key


class Summed(NamedTuple):
    """A count, and the sums of the counted ids."""

    events: int
    s1: int
    s2: int


Cells = Mapping[str, Mapping[int, Summed]]  # campaign -> window start in ms -> content
Sink = Callable[[Redis, int, Cells], None]


def absolute(client: Redis, _batch: int, totals: Cells) -> None:
    pipeline = client.pipeline(transaction=False)
    for campaign, windows in totals.items():
        at_ms = now_ms()
        pipeline.hset(campaign, mapping={str(window): cell.events for window, cell in windows.items()})
        pipeline.hset(sums_key(campaign), mapping={str(w): spell((cell.s1, cell.s2)) for w, cell in windows.items()})
        pipeline.hset(updated_key(campaign), mapping={str(window): at_ms for window in windows})
    pipeline.execute()


# KEYS: counts, times of update, sums, and of a fence. ARGV: batch, time, then window, count, S1 and S2 in turns.
# Numbers are doubles here, which is exact for the sum of two numbers below 2^48.
ADD = f"""
for i = 3, #ARGV, 4 do
  redis.call('HINCRBY', KEYS[1], ARGV[i], ARGV[i + 1])
  redis.call('HSET', KEYS[2], ARGV[i], ARGV[2])
  local s1, s2 = string.match(redis.call('HGET', KEYS[3], ARGV[i]) or '0,0', '(%d+),(%d+)')
  s1, s2 = (s1 + ARGV[i + 2]) % {ID_RANGE}, (s2 + ARGV[i + 3]) % {PRIME}
  redis.call('HSET', KEYS[3], ARGV[i], string.format('%.0f,%.0f', s1, s2))
end
"""
FENCED_ADD = f"""
if tonumber(ARGV[1]) <= tonumber(redis.call('GET', KEYS[4]) or '-1') then
  return 0
end
{ADD}
redis.call('SET', KEYS[4], ARGV[1])
return 1
"""


def increment(client: Redis, batch: int, increments: Cells) -> None:
    pipeline = client.pipeline(transaction=False)
    for campaign, windows in increments.items():
        keys = campaign, updated_key(campaign), sums_key(campaign)
        pipeline.eval(ADD, len(keys), *keys, batch, now_ms(), *_in_turns(windows))
    pipeline.execute()


def fenced(client: Redis, batch: int, increments: Cells) -> None:
    pipeline = client.pipeline(transaction=False)
    for campaign, windows in increments.items():
        keys = campaign, updated_key(campaign), sums_key(campaign), fence_key(campaign)
        pipeline.eval(FENCED_ADD, len(keys), *keys, batch, now_ms(), *_in_turns(windows))
    pipeline.execute()


SUMMED_SINKS: Mapping[str, Sink] = {
    "absolute": absolute,
    "fenced": fenced,
    "increment": increment,
    "increment-retrying": increment,
}


def _in_turns(windows: Mapping[int, Summed]) -> list[int]:
    return [value for window, cell in windows.items() for value in (window, *cell)]
