"""A Redis client whose keys all begin with the same prefix, for a user who may write below it only.

Callers use keys without the prefix. An unknown command is refused, because it could reach foreign keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import redis
from redis.client import Pipeline

# The positions of keys among the words of a command.
NO_KEY = frozenset(
    {"MULTI", "EXEC", "DISCARD", "UNWATCH", "PING", "INFO", "DBSIZE", "SCAN", "SCRIPT LOAD", "SCRIPT EXISTS"}
)
FIRST = frozenset({"GET", "SET", "TYPE", "PTTL", "SADD", "SMEMBERS", "SSCAN"}) | {
    *("HSET", "HGET", "HMGET", "HGETALL", "HDEL", "HLEN", "HINCRBY"),
}
ALL = frozenset({"MGET", "EXISTS", "DEL", "UNLINK", "WATCH"})
PAIRS, SCRIPTS = "MSET", ("EVAL", "EVALSHA")


def below(prefix: str, words: Sequence[Any]) -> tuple[Any, ...]:
    """Return a command with the prefix before each of its keys."""
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
    """A client that adds `prefix` to all keys. `client_of` sets it."""

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
        """Return the keys below the prefix, without it."""
        cursor, keys = super().scan(cursor, f"{self.prefix}{match or '*'}", count, _type, **options)
        return cursor, [key[len(self.prefix if isinstance(key, str) else self.prefix.encode()) :] for key in keys]

    def dbsize(self, **_: Any) -> int:
        return sum(1 for _ in self.scan_iter(count=1000))


def client_of(url: str, prefix: str = "", **settings: Any) -> redis.Redis:
    """Return a client with this prefix, or a plain one without."""
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
