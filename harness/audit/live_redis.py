"""A Redis in the original's schema, as a job has left it. Nothing is written to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import redis

from harness.audit.left import Cells, Left, Offered
from harness.model import HarnessError

PAGE = 1000
WINDOWS, COUNT, UPDATED = "windows", "seen_count", "time_updated"


def read(client: redis.Redis, place: str, offered: Offered) -> Left:
    try:
        return _read(client, place, offered)
    except redis.RedisError as error:
        raise HarnessError(f"{place} could not be read ({error}). Look whether a Redis answers there.") from error


def _read(client: Any, place: str, offered: Offered) -> Left:
    cells, faults, owned = Cells(), [], set()
    campaigns = sorted(client.smembers("campaigns"))
    if not campaigns:
        faults.append("there is no set `campaigns`, so that nobody knows whose counts these are")
    for campaign in campaigns:
        windows = {name: key for name, key in client.hgetall(campaign).items() if name != WINDOWS}
        for start, key in windows.items():
            owned.add(key)
            count, updated = client.hmget(key, COUNT, UPDATED)
            if not (start.isdigit() and (count or "").isdigit()):
                faults.append(f"campaign {campaign}, window {start}: {COUNT} is {count!r}")
                continue
            cells.add(campaign, int(start), int(count), int(updated) if (updated or "").isdigit() else None)
    orphans = sum(count for key, count in _counted(client) if key not in owned)
    return cells.left(place, offered.window_ms, faults, orphans=orphans)


def _counted(client: Any) -> Iterator[tuple[str, int]]:
    """Every hash that holds a count, whoever refers to it."""
    for key in client.scan_iter(count=PAGE, _type="hash"):
        count = client.hget(key, COUNT)
        if count and count.isdigit():
            yield key, int(count)
