"""The benchmark's table of ads in Redis."""

from __future__ import annotations

from typing import cast

import redis

UUID_LENGTH = 36


def read_ads(client: redis.Redis) -> dict[str, str]:
    """Return the campaign of each ad. The benchmark stores each pair as a plain string; all other keys there differ in
    type or length.
    """
    keys = [key for key in client.scan_iter(_type="string", count=5000) if len(key) == UUID_LENGTH]
    ads: dict[str, str] = {}
    for start in range(0, len(keys), 5000):
        some = keys[start : start + 5000]
        campaigns = cast(list[str | None], client.mget(some))
        ads.update((ad, campaign) for ad, campaign in zip(some, campaigns, strict=True) if campaign)
    return ads
