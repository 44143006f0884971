"""Redis as the jobs see it: the table of ads to read, a connection to write results through.

Results: hash `<campaign>` with `<window start in ms>` -> count, hash `updated:<campaign>` with the same fields ->
epoch ms of the last write.
"""

from __future__ import annotations

from typing import cast

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

UUID_LENGTH = 36


def connect(url: str, *, retries: bool = False) -> redis.Redis:
    """No retries: a command whose answer got lost may have been executed, and to send HINCRBY again counts it twice.

    With `retries`, what `redis.Redis(host=...)` does unless it is told otherwise: it sends again, up to ten times, and
    says nothing. (`from_url` has no retries of its own in redis-py 8.)
    """
    retry = redis.Redis().get_retry() if retries else Retry(NoBackoff(), 0)
    return redis.Redis.from_url(url, decode_responses=True, retry=retry, socket_timeout=60)


def read_ads(client: redis.Redis) -> dict[str, str]:
    """Ad -> campaign. The benchmark keeps each pair as a plain string; all else there has another type or key."""
    keys = [key for key in client.scan_iter(_type="string", count=5000) if len(key) == UUID_LENGTH]
    ads: dict[str, str] = {}
    for start in range(0, len(keys), 5000):
        some = keys[start : start + 5000]
        campaigns = cast(list[str | None], client.mget(some))
        ads.update((ad, campaign) for ad, campaign in zip(some, campaigns, strict=True) if campaign)
    return ads


def updated_key(campaign: str) -> str:
    return f"updated:{campaign}"
