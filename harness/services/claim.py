"""Decides whether a run may use an existing Redis database, and which of its keys may be deleted.

A database is used if it is empty, or if it holds our marker and nothing else. With `reset` the keys of earlier runs are
deleted first: only those that a run has recorded as its own. During a run we record the names that its results and
tables may have; when it ends in order, the keys that exist. A key that came later, or has another name, is foreign:
then the database is refused and stays unchanged.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import islice

import redis

from harness.model import UsageError
from harness.services.owners import is_alive, is_dead, owner_mark
from harness.util.texts import many
from workloads.prefixed import prefix_of

OURS = "streamgauge:"
MARKER = f"{OURS}marker"
OWNER = f"{OURS}owner"  # the process whose run uses the database; deleted when the run ends
KEYS = f"{OURS}keys"  # a set: the keys left by the last run
NAMES = f"{OURS}names"  # a set of patterns: the keys that a run may write; stays if the run was killed
KEYS_NAMED = 5
PAGE = 1000
# A run on another machine counts as alive for this long. On this machine we check its process.
LONGEST_RUN_S = 6 * 3600


def keys_to_delete(client: redis.Redis, *, reset: bool) -> list[str]:
    """Return the keys to delete before a run may use the database. Raise UsageError if it may not."""
    _refuse_in_use(client, str(client.get(OWNER) or ""))
    marked = bool(client.exists(MARKER))
    if not client.dbsize() - marked:
        return []
    keys = [key for key in client.scan_iter(count=PAGE) if not key.startswith(OURS)]
    if not keys:
        return []
    if not marked:
        raise UsageError(
            f"{_place(client)} was not created by streamgauge: it has {_in_words(keys)} and no {MARKER}. Nothing "
            f"was written. Name {_other(client, 'an empty')}. streamgauge does not empty this one, not even with "
            f"--reset."
        )
    if not reset:
        raise UsageError(
            f"{_place(client)} was created by streamgauge (it holds {MARKER}), but still has {_in_words(keys)} of "
            f"an earlier run. Add "
            f"--reset to delete them, or name {_other(client)}."
        )
    if foreign := _foreign(client, keys):
        raise UsageError(
            f"{_place(client)} holds {MARKER}, but also {_in_words(foreign)} that no run has recorded. Nothing was "
            f"deleted. If these keys are not needed, delete them yourself. Otherwise name {_other(client)}."
        )
    return keys


def claim(client: redis.Redis, *, reset: bool) -> None:
    """Make the database ours, or refuse. If two owners try at once, only one succeeds."""
    before = client.get(OWNER)
    keys = keys_to_delete(client, reset=reset)
    now = datetime.now(UTC).isoformat(timespec="seconds")

    def take(pipe: redis.client.Pipeline) -> None:
        if pipe.get(OWNER) != before:
            raise UsageError(f"{_place(client)} was claimed by another run at the same moment. Name {_other(client)}.")
        pipe.multi()
        pipe.set(OWNER, owner_mark(), ex=LONGEST_RUN_S)
        pipe.set(MARKER, f"claimed {now}")

    client.transaction(take, OWNER)
    for start in range(0, len(keys), PAGE):
        client.unlink(*keys[start : start + PAGE])
    client.delete(KEYS, NAMES)


def expect(client: redis.Redis, patterns: Iterable[str]) -> None:
    """Record the keys that the run may write, before it writes any. The patterns are shell patterns."""
    _add(client, NAMES, sorted(patterns))


def release(client: redis.Redis) -> int:
    """Record the keys that the ended run leaves, and unlock the database. Return the number of keys."""
    keys = [key for key in client.scan_iter(count=PAGE) if not key.startswith(OURS)]
    _add(client, KEYS, keys)
    client.delete(NAMES, OWNER)
    return len(keys)


def literal(key: str) -> str:
    """Return the pattern that matches exactly this key."""
    return re.sub(r"([*?\[])", r"[\1]", key)


def _place(client: redis.Redis) -> str:
    """With a prefix, only the keys below it are examined."""
    prefix = prefix_of(client)
    return f"The Redis database below the prefix {prefix!r}" if prefix else "The Redis database"


def _other(client: redis.Redis, which: str = "another") -> str:
    more = " or another --redis-prefix" if prefix_of(client) else ""
    return f"{which} database (the number at the end of the address){more}"


def _refuse_in_use(client: redis.Redis, owner: str) -> None:
    if not owner or owner == owner_mark() or is_dead(owner):
        return
    who = f"process {owner.partition(':')[0]}" if is_alive(owner) else "a run on another machine"
    raise UsageError(
        f"{_place(client)} is in use by {who} ({OWNER} is {owner}). Wait until that run has ended, or name "
        f"{_other(client)}. If it was killed, delete that key: redis-cli -u ADDRESS DEL {prefix_of(client)}{OWNER}"
    )


def _foreign(client: redis.Redis, keys: Sequence[str]) -> list[str]:
    recorded = set(client.sscan_iter(KEYS, count=PAGE))
    patterns = list(client.sscan_iter(NAMES, count=PAGE))
    may_be = re.compile("|".join(map(fnmatch.translate, patterns)) or r"(?!)")
    return [key for key in keys if key not in recorded and not may_be.match(key)]


def _add(client: redis.Redis, name: str, members: Sequence[str]) -> None:
    for start in range(0, len(members), PAGE):
        client.sadd(name, *members[start : start + PAGE])


def _in_words(keys: Sequence[str]) -> str:
    named = sorted(islice(keys, KEYS_NAMED))
    return f"{many(len(keys), 'key')} ({', '.join(named)}{', ...' if len(keys) > KEYS_NAMED else ''})"
