"""Checks what an external Redis permits this user and whether it has memory left, with trials on our own keys, which
are deleted again. Its counters also show evictions and refusals since a given moment."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import redis

from harness.services.claim import OURS
from harness.util.server_errors import REDIS, REDIS_CLASSES, answer_of_redis, of_redis

KEEPS = ("noeviction", "volatile-")  # policies that never evict our keys, which have no time to live


class Wants(NamedTuple):
    """The needs of a run from Redis."""

    bytes: int = 0
    scripts: bool = False


class Refusal(NamedTuple):
    """One refusal. `name` is the error code of Redis, or the setting that prevents the run."""

    name: str
    sentence: str


def refusals(client: redis.Redis, place: str, wants: Wants) -> list[Refusal]:
    """Return the commands that this user is refused, and a lack of memory."""
    told = info(client)
    where = f"Redis at {place}"
    if told.get("role", "master") != "master":
        return [Refusal("READONLY", f"{where} is a replica, which accepts no writes. To try: {REDIS['READONLY']}.")]
    if told.get("cluster_enabled"):
        return [Refusal("MOVED", f"{where} is a node of a cluster. To try: {REDIS['MOVED']}.")]
    found: list[Refusal] = []
    for command, trial in _trials(client, f"{OURS}check:{secrets.token_hex(6)}", scripts=wants.scripts):
        try:
            trial()
        except redis.RedisError as error:
            found.append(Refusal(answer_of_redis(error), f"{where} refused {command}: {of_redis(error)}."))
            if answer_of_redis(error) != "NOPERM":  # the others would be refused for the same reason
                break
    return [*found, *_without_room(told, where, wants)]


def _trials(client: redis.Redis, key: str, *, scripts: bool) -> list[tuple[str, Callable[[], Any]]]:
    text, table, members = f"{key}:text", f"{key}:hash", f"{key}:set"

    def together() -> None:
        # On one connection: in a pipeline the client ignores a refused MULTI.
        with client.client() as one:  # type: ignore[no-untyped-call]
            one.execute_command("MULTI")
            one.execute_command("DISCARD")
        with client.pipeline(transaction=True) as pipe:
            pipe.watch(text)  # type: ignore[no-untyped-call]
            pipe.multi()
            pipe.get(text)
            pipe.execute()

    return [
        ("SET", lambda: client.set(text, "1", ex=60)),
        ("GET", lambda: client.get(text)),
        ("MSET", lambda: client.mset({text: "1"})),
        ("HSET", lambda: client.hset(table, "0", "1")),
        ("HGETALL", lambda: client.hgetall(table)),
        ("HINCRBY", lambda: client.hincrby(table, "0", 1)),
        ("SADD", lambda: client.sadd(members, "1")),
        ("SSCAN", lambda: client.sscan(members)),
        ("TYPE", lambda: client.type(table)),
        ("EXISTS", lambda: client.exists(table)),
        ("SCAN", lambda: client.scan(count=1)),
        ("DBSIZE", client.dbsize),
        ("WATCH, MULTI and EXEC", together),
        *([("EVAL", lambda: client.eval("return redis.call('GET', KEYS[1])", 1, text))] if scripts else []),
        ("UNLINK", lambda: client.unlink(text, table, members)),
        ("DEL", lambda: client.delete(text)),
    ]


def info(client: redis.Redis) -> Mapping[str, Any]:
    """Return {} if this user may not ask."""
    with suppress(redis.ResponseError):
        told: Mapping[str, Any] = client.info("everything")
        return told
    return {}


def _without_room(told: Mapping[str, Any], where: str, wants: Wants) -> list[Refusal]:
    most, used = int(told.get("maxmemory", 0)), int(told.get("used_memory", 0))
    policy = str(told.get("maxmemory_policy", "noeviction"))
    if not most or not wants.bytes or most - used >= wants.bytes:
        return []
    then = "refuses writes" if policy.startswith(KEEPS) else "evicts keys, also those of results"
    return [
        Refusal(
            "maxmemory",
            f"{where} has {max(0, most - used):,} of {most:,} bytes (maxmemory) left, but this run needs about "
            f"{wants.bytes:,}: when they are used up, it {then} (maxmemory-policy {policy}). Raise maxmemory, or take "
            "fewer --campaigns, --probes or a shorter --duration.",
        )
    ]


class Counters(NamedTuple):
    """The server's counters since its start, over all users."""

    evicted: int = 0
    refused: Mapping[str, int] = {}  # by error code

    def since(self, before: Counters) -> Counters:
        refused = {name: more for name, count in self.refused.items() if (more := count - before.refused.get(name, 0))}
        return Counters(self.evicted - before.evicted, refused)

    def in_words(self) -> str:
        refused = [f"errorstat_{name} +{count:,}" for name, count in self.refused.items() if name in REDIS]
        return ", ".join([*([f"evicted_keys +{self.evicted:,}"] if self.evicted else []), *refused])


def counters(client: redis.Redis) -> Counters:
    told = info(client)
    refused = {
        name.removeprefix("errorstat_"): int(value["count"] if isinstance(value, dict) else str(value).split("=")[-1])
        for name, value in told.items()
        if name.startswith("errorstat_")
    }
    return Counters(int(told.get("evicted_keys", 0)), refused)


def names(answer: str, words: str) -> bool:
    """Return whether a log contains this error of Redis, by its code or by a client's exception class."""
    kinds = [rf"redis\.exceptions\.{kind}" for kind, word in REDIS_CLASSES.items() if word == answer]
    return answer in REDIS and any(re.search(rf"\b{each}\b", words) for each in (answer, *kinds))
