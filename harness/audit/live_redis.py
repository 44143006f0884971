"""A Redis in the original's schema with the results of a job. It is read only."""

from __future__ import annotations

from typing import Any

import redis

from harness.audit.left import Cells, Left, Offered
from harness.model import HarnessError
from harness.results import redis_scan
from harness.results.base import UPDATED
from harness.results.yahoo import COUNT, translated
from harness.util.integers import parse_int64


def read(client: redis.Redis, place: str, offered: Offered) -> Left:
    try:
        return _read(client, place, offered)
    except redis.RedisError as error:
        raise HarnessError(f"{place} could not be read ({error}). Check that a Redis answers there.") from error


def _read(client: Any, place: str, offered: Offered) -> Left:
    cells, faults = Cells(), []
    campaigns = sorted(client.smembers("campaigns"))
    if not campaigns:
        faults.append("there is no set `campaigns`, so the campaigns of the counts are unknown")
    rows = translated(redis_scan.scan(client), campaigns)
    updated = {(row.key.removeprefix(UPDATED), row.field): row.value for row in rows if row.key.startswith(UPDATED)}
    known, orphans = set(campaigns), 0
    for row in rows:
        if row.key not in known:
            orphans += (_counted(row.value) or 0) if row.field == COUNT else 0
        elif (window := _counted(row.field)) is not None and (count := _counted(row.value)) is not None:
            try:
                cells.add(row.key, window, count, _counted(updated.get((row.key, row.field), "")))
            except OverflowError as number:
                faults.append(f"campaign {row.key}, window {row.field}: {number} is too large")
        else:
            faults.append(f"campaign {row.key}, window {row.field}: {COUNT} is {row.value!r}")
    return cells.left(place, offered.window_ms, faults, orphans=orphans)


def _counted(text: str) -> int | None:
    number = parse_int64(text)
    return None if number is None or number < 0 else number
