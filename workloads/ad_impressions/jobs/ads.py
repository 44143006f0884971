"""The table of ads, as the benchmark keeps it in Redis."""

from __future__ import annotations

from typing import cast

import redis

UUID_LENGTH = 36


def read_ads(client: redis.Redis) -> dict[str, str]:
    """Ad -> campaign. The benchmark keeps each pair as a plain string; all else there has another type or key."""
    keys = [key for key in client.scan_iter(_type="string", count=5000) if len(key) == UUID_LENGTH]
    ads: dict[str, str] = {}
    for start in range(0, len(keys), 5000):
        some = keys[start : start + 5000]
        campaigns = cast(list[str | None], client.mget(some))
        ads.update((ad, campaign) for ad, campaign in zip(some, campaigns, strict=True) if campaign)
    return ads
