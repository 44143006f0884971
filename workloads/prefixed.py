"""A client of Redis all of whose keys begin with the same text, for a user who may write below it only.

Whoever uses it names keys without the prefix, and gets them so. A command that is not known here is refused: it could
reach keys of others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import redis
from redis.client import Pipeline

# Where the keys of a command stand among its words.
NO_KEY = frozenset(
    {"MULTI", "EXEC", "DISCARD", "UNWATCH", "PING", "INFO", "DBSIZE", "SCAN", "SCRIPT LOAD", "SCRIPT EXISTS"}
)
FIRST = frozenset({"GET", "SET", "TYPE", "PTTL", "SADD", "SMEMBERS", "SSCAN"}) | {
    *("HSET", "HGET", "HMGET", "HGETALL", "HDEL", "HLEN", "HINCRBY"),
}
ALL = frozenset({"MGET", "EXISTS", "DEL", "UNLINK", "WATCH"})
PAIRS, SCRIPTS = "MSET", ("EVAL", "EVALSHA")


def below(prefix: str, words: Sequence[Any]) -> tuple[Any, ...]:
    """A command with the prefix before each of its keys."""
    name, *rest = words
    if name in NO_KEY:
        keys = range(0)
    elif name in FIRST:
        keys = range(1)
    elif name in ALL:
        keys = range(len(rest))
    elif name == PAIRS:
        keys = range(0, len(rest), 2)
    elif name in SCRIPTS:
        keys = range(2, 2 + int(rest[1]))
    else:
        raise redis.DataError(f"{name} can't be used below the prefix {prefix!r}: it is not known where its keys stand")
    return (name, *(_joined(prefix, word) if n in keys else word for n, word in enumerate(rest)))


class Prefixed(redis.Redis):
    """See above. `prefix` is set when it is made."""

    prefix = ""

    def execute_command(self, *words: Any, **options: Any) -> Any:
        return super().execute_command(*below(self.prefix, words), **options)  # type: ignore[no-untyped-call]

    def pipeline(self, transaction: bool = True, shard_hint: str | None = None) -> Pipeline:
        made = _Pipeline(self.connection_pool, self.response_callbacks, transaction, shard_hint)
        made.prefix = self.prefix
        return made

    def client(self) -> Prefixed:
        made: Prefixed = super().client()  # type: ignore[no-untyped-call]
        made.prefix = self.prefix
        return made

    def scan(
        self, cursor: Any = 0, match: Any = None, count: Any = None, _type: Any = None, **options: Any
    ) -> tuple[Any, list[Any]]:
        """Of the keys below the prefix, without it."""
        cursor, keys = super().scan(cursor, f"{self.prefix}{match or '*'}", count, _type, **options)
        return cursor, [key[len(self.prefix if isinstance(key, str) else self.prefix.encode()) :] for key in keys]

    def dbsize(self, **_: Any) -> int:
        return sum(1 for _ in self.scan_iter(count=1000))


def client_of(url: str, prefix: str = "", **settings: Any) -> redis.Redis:
    """A plain client without a prefix."""
    if not prefix:
        plain: redis.Redis = redis.Redis.from_url(url, **settings)
        return plain
    made = Prefixed.from_url(url, **settings)
    made.prefix = prefix  # type: ignore[attr-defined]
    return made


def prefix_of(client: redis.Redis) -> str:
    return client.prefix if isinstance(client, Prefixed) else ""


class _Pipeline(Pipeline):
    prefix = ""

    def execute_command(self, *words: Any, **options: Any) -> Any:
        return super().execute_command(*below(self.prefix, words), **options)  # type: ignore[no-untyped-call]


def _joined(prefix: str, key: Any) -> Any:
    return prefix.encode() + key if isinstance(key, bytes) else f"{prefix}{key}"
