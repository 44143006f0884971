"""Reads the results where a reader would see them: all of Redis, orphans included. Thin: it gives raw rows.

What the rows mean is decided by the pure function `interpret`, so that a stored run can be judged again.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import redis

from harness.checks.case import Observed, Stray
from harness.checksums import PREFIX, Checksum
from harness.ledger import Cell, Ledger
from harness.model import HarnessError

OUR_KEYS = "streamgauge:*"
PAGE = 1000


class UnreadableError(HarnessError):
    """Results that can't be read, although every service answers: what is there to read them with failed."""


class Row(NamedTuple):
    """One field of a hash, or one key of another kind (then without a field)."""

    key: str
    field: str
    value: str
    kind: str


def scan(client: redis.Redis) -> list[Row]:
    """Everything in the database but the ad table's strings, which are ours and many."""
    keys = sorted(client.scan_iter(count=PAGE))
    rows: list[Row] = []
    for start in range(0, len(keys), PAGE):
        page = keys[start : start + PAGE]
        with client.pipeline(transaction=False) as pipe:
            for key in page:
                pipe.type(key)
            kinds = pipe.execute()
        hashes = [key for key, kind in zip(page, kinds, strict=True) if kind == "hash"]
        rows += [
            Row(key, "", "", kind) for key, kind in zip(page, kinds, strict=True) if kind not in ("hash", "string")
        ]
        rows += [
            Row(key, "", "", "string")
            for key, kind in zip(page, kinds, strict=True)
            if kind == "string" and len(key) != 36
        ]
        with client.pipeline(transaction=False) as pipe:
            for key in hashes:
                pipe.hgetall(key)
            for key, fields in zip(hashes, pipe.execute(), strict=True):
                rows += [Row(key, field, value, "hash") for field, value in fields.items()]
    return rows


def counts_only(client: redis.Redis, campaign_names: Sequence[str]) -> dict[str, dict[str, str] | str]:
    """The hashes of the known campaigns: the cheap look that a drain compares with the one before."""
    with client.pipeline(transaction=False) as pipe:
        for name in campaign_names:
            pipe.hgetall(name)
        replies = zip(campaign_names, pipe.execute(raise_on_error=False), strict=True)
        # A key that is no hash answers with an error, which is looked at like any other reply.
        return {name: str(reply) if isinstance(reply, Exception) else reply for name, reply in replies if reply}


def interpret(rows: Iterable[Row], campaign_index: Mapping[str, int], bookkeeping: Sequence[str]) -> Observed:
    """Raw rows as counts per cell, and everything that is no count under its own name."""
    ours = (OUR_KEYS, "campaigns", "updated:*", *bookkeeping)
    counts: dict[Cell, int] = {}
    sums: dict[Cell, Checksum] = {}
    strays: list[Stray] = []
    for row in rows:
        if any(fnmatch.fnmatchcase(row.key, pattern) for pattern in ours):
            continue
        where = f"{row.key}[{row.field}]" if row.field else row.key
        campaign = campaign_index.get(row.key.removeprefix(PREFIX))
        if row.kind != "hash":
            strays.append(Stray(where, row.kind, "key"))
        elif campaign is None:
            strays.append(Stray(where, row.value, "campaign"))
        elif (window := _whole(row.field)) is None:
            strays.append(Stray(where, row.value, "number"))
        elif row.key.startswith(PREFIX) and (checksum := Checksum.read(row.value)) is not None:
            sums[Cell(campaign, window)] = checksum
        elif not row.key.startswith(PREFIX) and (count := _whole(row.value)) is not None:
            counts[Cell(campaign, window)] = count
        else:
            strays.append(Stray(where, row.value, "number"))
    return Observed(Ledger(counts), tuple(strays), sums)


def _whole(text: str) -> int | None:
    """Redis' own idea of a whole number, which is narrower than Python's: no spaces, no underscores, ASCII digits."""
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdecimal() else None
