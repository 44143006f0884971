"""Reads the results where a reader would see them: all of Redis, orphans included. Thin: it gives raw rows.

What the rows mean is decided by the pure function `interpret`, so that a stored run can be judged again.
"""

from __future__ import annotations

import fnmatch
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import redis

from harness.evidence.checksums import PREFIX, Checksum
from harness.evidence.ledger import Ledger
from harness.evidence.observed import Ambiguity, Observed, Stray
from harness.model import Expiring, HarnessError
from harness.util.integers import whole
from harness.util.texts import quoted, readable, shown
from workloads.cells import Codes
from workloads.totals import InTotals

OUR_KEYS = "streamgauge:*"
LEFT = "streamgauge:left:"  # and the key of an output: its place among all that left
OURS = (OUR_KEYS, "campaigns", "updated:*")
PAGE = 1000
# All is read again so often while keys vanish, or change their type, between their name and their content.
MOST_LOOKS = 10

# Kinds of rows: a field of a hash, and a key of another type under the word that Redis has for the type. `none` is its
# word for a key that is not there.
HASH, STRING, VANISHED = "hash", "string", "none"
# What a translator could not translate, in its own words: it stands where results belong, and is none.
NO_RESULT = "no result"
ELSEWHERE = "hash elsewhere"  # a result in our own schema, where the manifest looks for results of another one
ORPHAN = "orphan"  # the count of a window of Yahoo's schema to which no campaign refers
# What reads a key of each type; of the other types it is enough that they are there.
_READERS = {HASH: "HGETALL", STRING: "GET"}
WRONG_TYPE = "WRONGTYPE"  # how Redis' own answer begins


class UnreadableError(HarnessError):
    """Results that can't be read, although every service answers: what is there to read them with failed."""


class Row(NamedTuple):
    """One field of a hash, or one key of another kind (then without a field)."""

    key: str
    field: str
    value: str
    kind: str


def as_columns(rows: Sequence[Row]) -> Mapping[str, list[str]]:
    """As a table of a run."""
    return {column: [row[i] for row in rows] for i, column in enumerate(Row._fields)}


def unlike(before: Iterable[Row], after: Iterable[Row]) -> int:
    """How many rows only one of two readings has."""
    one, other = Counter(before), Counter(after)
    return (one - other).total() + (other - one).total()


def scan(client: redis.Redis, tables: Mapping[str, str] = MappingProxyType({})) -> list[Row]:
    """Everything in the database but the keys of the workload's tables, which are ours and many. One that has another
    kind than it had is no longer ours.

    It is read as octets, and what is no text gets an escaped name. Only a look in which no key vanished saw all that
    was there; a key that vanished in each of them is told under its name.
    """
    skipped = {key.encode(): kind for key, kind in tables.items()}
    for _ in range(MOST_LOOKS):
        rows, vanished = _look(client, skipped)
        if not vanished:
            break
    return rows + [Row(readable(key), "", "", VANISHED) for key in vanished]


def _look(client: redis.Redis, skipped: Mapping[bytes, str]) -> tuple[list[Row], list[bytes]]:
    """All rows, and the keys that were there and a moment later were not, or not what they had been."""
    keys = sorted(set(client.scan_iter(count=PAGE, NEVER_DECODE=True)))
    rows: list[Row] = []
    vanished: list[bytes] = []
    for start in range(0, len(keys), PAGE):
        page = keys[start : start + PAGE]
        kinds = zip(page, map(readable, _asked(client, [("TYPE", key) for key in page])), strict=True)
        wanted = [(key, kind) for key, kind in kinds if skipped.get(key) != kind]
        contents = _asked(client, [(_READERS.get(kind, "EXISTS"), key) for key, kind in wanted])
        for (key, kind), content in zip(wanted, contents, strict=True):
            if kind == VANISHED or content in (None, {}, 0) or isinstance(content, redis.ResponseError):
                vanished.append(key)
            else:
                rows += _rows(readable(key), kind, content)
    return rows, vanished


def _asked(client: redis.Redis, commands: Iterable[tuple[str, bytes]]) -> list[Any]:
    """The answers as octets; that a key is of another type is an answer too."""
    with client.pipeline(transaction=False) as pipe:
        for command in commands:
            pipe.execute_command(*command, NEVER_DECODE=True)  # type: ignore[no-untyped-call]
        return _given(pipe.execute(raise_on_error=False))


def _given(answers: Iterable[Any]) -> list[Any]:
    """Any other error is the server's refusal to answer, and says nothing of what it holds."""
    found = list(answers)
    for answer in found:
        if isinstance(answer, Exception) and not str(answer).startswith(WRONG_TYPE):
            raise answer
    return found


def _rows(key: str, kind: str, content: Any) -> list[Row]:
    if kind == HASH:
        return [Row(key, readable(field), readable(value), HASH) for field, value in content.items()]
    return [Row(key, "", readable(content) if kind == STRING else "", kind)]


def expiring(client: redis.Redis, others: tuple[str, ...]) -> Expiring | None:
    """The keys of the results that have a time to live; None for who may not ask."""
    try:
        return soonest(_lives_ms(client, others))
    except redis.exceptions.NoPermissionError:
        return None


def _lives_ms(client: redis.Redis, others: tuple[str, ...]) -> dict[str, int]:
    """Where no key of all databases has a time to live, none is asked."""
    if not any(database["expires"] for database in client.info("keyspace").values()):
        return {}
    keys = [key for key in client.scan_iter(count=PAGE, NEVER_DECODE=True) if not matches(readable(key), others)]
    answers = _asked(client, [("PTTL", key) for key in keys])
    return {readable(key): ms for key, ms in zip(keys, answers, strict=True) if ms >= 0}


def soonest(lives: Mapping[str, int]) -> Expiring:
    if not lives:
        return Expiring()
    first = min(lives, key=lambda key: lives[key])
    return Expiring(len(lives), lives[first], quoted(first))


def counts_only(client: redis.Redis, campaign_names: Sequence[str]) -> dict[str, dict[str, str] | str]:
    """The hashes of the known campaigns: the cheap look that a drain compares with the one before."""
    with client.pipeline(transaction=False) as pipe:
        for name in campaign_names:
            pipe.hgetall(name)
        replies = zip(campaign_names, _given(pipe.execute(raise_on_error=False)), strict=True)
        # A key that is no hash answers with an error, which is looked at like any other reply.
        return {name: str(reply) if isinstance(reply, Exception) else reply for name, reply in replies if reply}


def strangers(hashes: Iterable[str], campaigns: Collection[str], bookkeeping: Sequence[str]) -> set[str]:
    """Hashes that are those of no campaign, and belong to nobody else."""
    unknown = (key for key in hashes if key.removeprefix(PREFIX) not in campaigns)
    return {key for key in unknown if not matches(key, (*OURS, *bookkeeping))}


def matches(key: str, patterns: tuple[str, ...]) -> bool:
    """Whether a key is one of these patterns, as those of a shell are written."""
    return _any_of(patterns).match(key) is not None


@cache
def _any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(fnmatch.translate, patterns)))


def interpret(
    rows: Iterable[Row], campaign_index: Mapping[str, int], codes: Codes, bookkeeping: Sequence[str]
) -> Observed:
    """Raw rows as counts per cell, and everything that is no count under its own name."""
    ours = (*OURS, *bookkeeping)
    counts: dict[int, list[int]] = {}
    sums: dict[int, list[Checksum]] = {}
    left: dict[int, int] = {}
    strays: list[Stray] = []
    for row in rows:
        if row.key.startswith(LEFT) and (key := campaign_index.get(row.key.removeprefix(LEFT))) is not None:
            left[codes.one(key, int(row.field))] = int(row.value)
        if matches(row.key, ours):
            continue
        campaign = campaign_index.get(row.key.removeprefix(PREFIX))
        if row.kind != HASH or campaign is None:
            strays.append(_stray(row, known=campaign is not None))
            continue
        window, summed = whole(row.field), row.key.startswith(PREFIX)
        count, checksum = (None, Checksum.read(row.value)) if summed else (whole(row.value), None)
        if window is not None and count is not None:
            counts.setdefault(codes.one(campaign, window), []).append(count)
        elif window is not None and checksum is not None:
            sums.setdefault(codes.one(campaign, window), []).append(checksum)
        else:
            strays.append(Stray(_place(row), shown(row.value), "number"))
    return Observed(
        Ledger((cell, found[-1]) for cell, found in counts.items()),
        tuple(strays),
        {cell: found[-1] for cell, found in sums.items()},
        zeros=tuple(cell for cell, found in counts.items() if found[-1] == 0),
        ambiguities=(*_ambiguities("count", counts), *_ambiguities("sums", sums)),
        left=left,
    )


def in_totals(seen: Observed, oracle: InTotals) -> Observed:
    """The same of all windows together. Two values in one field are two in any case."""
    return replace(seen, counts=Ledger.of(oracle.in_all_of(seen.counts)), sums={}, zeros=())


def _stray(row: Row, *, known: bool) -> Stray:
    """What is no field of a known campaign's hash. `known`: its key is that of a campaign all the same."""
    if row.kind == HASH:
        return Stray(_place(row), shown(row.value), "campaign")
    if row.kind in (ORPHAN, NO_RESULT):
        return Stray(_place(row), shown(row.value), "orphan" if row.kind == ORPHAN else "number")
    if row.kind == ELSEWHERE:
        return Stray(_place(row), f"{shown(row.value)} at a key that does not fit the manifest", "number")
    if row.kind == VANISHED:
        return Stray(_place(row), "a key that vanished whenever it was read", "number")
    return Stray(_place(row), f"a key of type {row.kind}", "number" if known else "key")


def _place(row: Row) -> str:
    return shown(f"{quoted(row.key)}[{quoted(row.field)}]" if row.field else quoted(row.key))


def _ambiguities(what: Literal["count", "sums"], found: Mapping[int, Sequence[object]]) -> Iterable[Ambiguity]:
    return (Ambiguity(cell, what, tuple(map(str, values))) for cell, values in found.items() if len(values) > 1)
