"""Redis in the schema of all jobs.

Results: hash `<key of a cell>` with `<field>` -> value, hash `updated:<key>` with the same fields -> epoch ms of the
last write.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from workloads.prefixed import client_of


def connect(config: Mapping[str, Any], *, retries: bool = False) -> redis.Redis:
    """Connect to the Redis of a job's run config, with its prefix if it has one.

    There are no retries: a command whose answer was lost may have been executed, and a second HINCRBY counts twice.
    With `retries`, the client has the defaults of `redis.Redis(host=...)`: it silently sends again up to ten times.
    (`from_url` has no retries of its own in redis-py 8.)
    """
    retry = redis.Redis().get_retry() if retries else Retry(NoBackoff(), 0)
    return client_of(config["redis"], config["redis_prefix"], decode_responses=True, retry=retry, socket_timeout=60)


def key_of(value: str, whose: str) -> str:
    """Name the hash of a value."""
    return f"{value}:{whose}"


def updated_key(key: str) -> str:
    return f"updated:{key}"


def write_fields(pipeline: Any, key: str, fields: Mapping[str, Any], at_ms: int) -> None:
    """Set fields of a hash of results, with the time of this write."""
    pipeline.hset(key, mapping=fields)
    pipeline.hset(updated_key(key), mapping=dict.fromkeys(fields, at_ms))
