"""Read the results from the store itself: all of Redis, orphans included. The readers return raw rows.

The pure function `interpret` decides what the rows mean, so that a stored run can be judged again.
"""

from __future__ import annotations

import fnmatch
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from types import MappingProxyType
from typing import Any, Generic, Literal, NamedTuple, TypeVar

import redis

from harness.evidence.checksums import PREFIX, Checksum
from harness.evidence.ledger import Ledger
from harness.evidence.observed import Ambiguity, Observed, Stray
from harness.model import Expiring, HarnessError
from harness.util.integers import parse_int64
from harness.util.texts import quoted, readable, shown
from workloads.cells import Codes
from workloads.totals import InTotals

_Value = TypeVar("_Value")

OUR_KEYS = "streamgauge:*"
LEFT = "streamgauge:left:"  # followed by an output's key: its place in the order of all outputs
OURS = (OUR_KEYS, "campaigns", "updated:*")
PAGE = 1000
# How often everything is read again while keys vanish, or change type, between the list of names and the read.
MOST_POLLS = 10

# Kinds of rows: a field of a hash, and a key of another type, under Redis' name of the type. Redis reports `none` for a
# missing key.
HASH, STRING, VANISHED = "hash", "string", "none"
# An entry in the place of results that a translator could not translate, with the reason as value.
NO_RESULT = "no result"
ELSEWHERE = "hash elsewhere"  # a result in our own schema, although the manifest declares another one
ORPHAN = "orphan"  # the count of a window of Yahoo's schema to which no campaign refers
# The command that reads a key of each type. For other types it suffices that the key exists.
_READERS = {HASH: "HGETALL", STRING: "GET"}
WRONG_TYPE = "WRONGTYPE"  # the beginning of Redis' error


class UnreadableError(HarnessError):
    """The results can't be read although every service answers: the reader itself failed."""


class UnreadableTableError(UnreadableError):
    """The table is there, and its reader does not understand it: what it holds is not known."""


class Row(NamedTuple):
    """One field of a hash, or one key of another type, without a field."""

    key: str
    field: str
    value: str
    kind: str


def as_columns(rows: Sequence[Row]) -> Mapping[str, list[str]]:
    """Convert rows to the columns of a table."""
    return {column: [row[i] for row in rows] for i, column in enumerate(Row._fields)}


def unlike(before: Iterable[Row], after: Iterable[Row]) -> int:
    """Count the rows that are in only one of two readings."""
    one, other = Counter(before), Counter(after)
    return (one - other).total() + (other - one).total()


def scan(client: redis.Redis, tables: Mapping[str, str] = MappingProxyType({})) -> list[Row]:
    """Read everything in the database except the workload's tables, which are ours and many.

    A table whose key has changed type is read too. Keys are read as bytes, and bytes that are no text are escaped. Only
    a scan in which no key vanished saw everything; a key that vanished in every scan is returned under its name.
    """
    skipped = {key.encode(): kind for key, kind in tables.items()}
    for _ in range(MOST_POLLS):
        rows, vanished = _scan(client, skipped)
        if not vanished:
            break
    return rows + [Row(readable(key), "", "", VANISHED) for key in vanished]


def _scan(client: redis.Redis, skipped: Mapping[bytes, str]) -> tuple[list[Row], list[bytes]]:
    """Return all rows, and the keys that vanished or changed type between two steps of this scan."""
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
    """Run the commands and return their replies as bytes. A WRONGTYPE error is a reply too."""
    with client.pipeline(transaction=False) as pipe:
        for command in commands:
            pipe.execute_command(*command, NEVER_DECODE=True)  # type: ignore[no-untyped-call]
        return _given(pipe.execute(raise_on_error=False))


def _given(answers: Iterable[Any]) -> list[Any]:
    """Raise any other error: it is the server's refusal to answer, and shows nothing of the content."""
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
    """Return the result keys that have a time to live; None without the permission to ask."""
    try:
        return soonest(_lives_ms(client, others))
    except redis.exceptions.NoPermissionError:
        return None


def _lives_ms(client: redis.Redis, others: tuple[str, ...]) -> dict[str, int]:
    """Skip the scan if no key of any database has a time to live."""
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


def counts_only(client: redis.Redis, keys: Sequence[str]) -> dict[str, dict[str, str] | str]:
    """Read the hashes of the known keys only: the cheap snapshot that a drain compares with the one before."""
    with client.pipeline(transaction=False) as pipe:
        for name in keys:
            pipe.hgetall(name)
        replies = zip(keys, _given(pipe.execute(raise_on_error=False)), strict=True)
        # A key that is no hash returns an error, which is compared like any other reply.
        return {name: str(reply) if isinstance(reply, Exception) else reply for name, reply in replies if reply}


def strangers(hashes: Iterable[str], known: Collection[str], bookkeeping: Sequence[str]) -> set[str]:
    """Return the hashes of unknown keys that have no other owner."""
    unknown = (key for key in hashes if key.removeprefix(PREFIX) not in known)
    return {key for key in unknown if not matches(key, (*OURS, *bookkeeping))}


def matches(key: str, patterns: tuple[str, ...]) -> bool:
    """Return True if the key matches one of these shell patterns."""
    return _any_of(patterns).match(key) is not None


@cache
def _any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(fnmatch.translate, patterns)))


def interpret(rows: Iterable[Row], index_of: Mapping[str, int], codes: Codes, bookkeeping: Sequence[str]) -> Observed:
    """Convert raw rows to counts per cell. Every other entry becomes a stray with its own name."""
    ours = (*OURS, *bookkeeping)
    read: dict[str, _Key] = {}
    counts, sums = _Last[int](), _Last[Checksum]()
    left: dict[int, int] = {}
    strays: list[Stray] = []
    for row in rows:
        key = read.get(row.key) or read.setdefault(row.key, _Key.of(row.key, index_of, ours))
        if key.left is not None:
            left[codes.one(key.left, int(row.field))] = int(row.value)
        if key.ours:
            continue
        if row.kind != HASH or key.number is None:
            strays.append(_stray(row, known=key.number is not None))
            continue
        window = parse_int64(row.field)
        count, checksum = (None, Checksum.read(row.value)) if key.summed else (parse_int64(row.value), None)
        if window is not None and count is not None:
            counts.add(codes.one(key.number, window), count)
        elif window is not None and checksum is not None:
            sums.add(codes.one(key.number, window), checksum)
        else:
            strays.append(Stray(_where(row), shown(row.value), "number"))
    return Observed(
        Ledger(counts.last),
        tuple(strays),
        sums.last,
        zeros=tuple(cell for cell, count in counts.last.items() if count == 0),
        ambiguities=(*counts.ambiguities("count"), *sums.ambiguities("sums")),
        left=left,
    )


class _Key(NamedTuple):
    """The facts that the name of a hash holds. Many rows have the same one."""

    left: int | None  # the number of the output whose places it has
    ours: bool  # it holds no results
    number: int | None  # of a result; None: an unknown one
    summed: bool

    @classmethod
    def of(cls, name: str, index_of: Mapping[str, int], ours: tuple[str, ...]) -> _Key:
        left = index_of.get(name.removeprefix(LEFT)) if name.startswith(LEFT) else None
        return cls(left, matches(name, ours), index_of.get(name.removeprefix(PREFIX)), name.startswith(PREFIX))


class _Last(Generic[_Value]):
    """The last value of each cell, and all of those that have several."""

    def __init__(self) -> None:
        self.last: dict[int, _Value] = {}
        self._several: dict[int, list[_Value]] = {}

    def add(self, cell: int, value: _Value) -> None:
        if cell in self.last:
            self._several.setdefault(cell, [self.last[cell]]).append(value)
        self.last[cell] = value

    def ambiguities(self, what: Literal["count", "sums"]) -> Iterable[Ambiguity]:
        several = self._several
        return (Ambiguity(cell, what, tuple(map(str, several[cell]))) for cell in self.last if cell in several)


def in_totals(seen: Observed, oracle: InTotals) -> Observed:
    """Convert counts per window to totals over all windows. Two values in one field remain an ambiguity."""
    return replace(seen, counts=Ledger.of(oracle.in_all_of(seen.counts)), sums={}, zeros=())


def _stray(row: Row, *, known: bool) -> Stray:
    """Describe an entry that is no field of a known key's hash. `known`: it belongs to a known key."""
    if row.kind == HASH:
        return Stray(_where(row), shown(row.value), "campaign")
    if row.kind in (ORPHAN, NO_RESULT):
        return Stray(_where(row), shown(row.value), "orphan" if row.kind == ORPHAN else "number")
    if row.kind == ELSEWHERE:
        return Stray(_where(row), f"{shown(row.value)} at a key that does not fit the manifest", "number")
    if row.kind == VANISHED:
        return Stray(_where(row), "a key that vanished whenever it was read", "number")
    return Stray(_where(row), f"a key of type {row.kind}", "number" if known else "key")


def _where(row: Row) -> str:
    return shown(f"{quoted(row.key)}[{quoted(row.field)}]" if row.field else quoted(row.key))
