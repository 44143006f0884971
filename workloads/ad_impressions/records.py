"""Reads ad impressions from records of any writer. It alone defines what a record means.

Most records have exactly the schema's shape. Such a record is recognised by its variable parts, which are looked up in
the population; the record is written again from them, and accepted only if the bytes are the same. All other records,
such as poison or JSON with other spaces, go through `json`, one by one. Both ways return the same for every record.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workloads.ad_impressions.schema import (
    AD_TYPES,
    EVENT_TYPES,
    ID_LENGTH,
    TIME_DIGITS,
    UUID_LENGTH,
    VIEW,
    Population,
    example_json,
)
from workloads.base import BESIDE, COUNTS, NO_EVENT, NOTHING, Values

VIEW_EVENT, OTHER_EVENT = COUNTS, BESIDE

# No engine accepts a later time.
YEAR_10000_MS = 253_402_300_800_000

_WORD = 8


@dataclass(frozen=True)
class Records:
    """Records as columns. -1 stands for a field that a record lacks or the population does not have."""

    event_id: NDArray[np.int64]  # from the key; -1: a foreign key
    campaign: NDArray[np.int32]
    event_time_ms: NDArray[np.int64]
    kind: NDArray[np.int8]
    ad: NDArray[np.int32]
    ad_type: NDArray[np.int8]
    event_type: NDArray[np.int8]
    user: NDArray[np.int8]
    page: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.event_id)

    def columns(self) -> dict[str, NDArray[Any]]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


_DTYPES: dict[str, Any] = {
    "event_id": np.int64,
    "campaign": np.int32,
    "event_time_ms": np.int64,
    "kind": np.int8,
    "ad": np.int32,
    "ad_type": np.int8,
    "event_type": np.int8,
    "user": np.int8,
    "page": np.int8,
}


@lru_cache(maxsize=4)
def reader(population: Population) -> RecordReader:
    """Return the cached reader of a population, whose tables are made once."""
    return RecordReader(population)


class RecordReader:
    """Reads records by the ids of a population and the shape of its records."""

    def __init__(self, population: Population) -> None:
        self._population = population
        self._shape = _Shape(population)
        # For a user only the part before the id of the event, if it carries one.
        self._user_length = UUID_LENGTH - ID_LENGTH if population.carries_ids else UUID_LENGTH
        users = tuple(name[: self._user_length] for name in population.user_ids)
        names = {"user": users, "page": population.page_ids, "ad": population.ad_ids}
        places = self._shape.places
        self._ids = {part: _Ids(some, places[part], self._shape.row.itemsize) for part, some in names.items()}
        self._tails = np.array([name[-ID_LENGTH:].encode() for name in population.user_ids], dtype=f"S{ID_LENGTH}")

    def read(self, values: Values, ids: NDArray[np.int64]) -> Records:
        records = self._read_shaped(values, ids)
        records.event_id[:] = ids
        for row in np.flatnonzero(records.kind == NO_EVENT).tolist():
            self._read_slowly(values[row], row, records)
        return records

    def read_slowly(self, values: Sequence[bytes | None], ids: NDArray[np.int64]) -> Records:
        """Read every record through `json`. This is the reference for `read`."""
        records = _empty(len(values))
        records.event_id[:] = ids
        for row, value in enumerate(values):
            self._read_slowly(value, row, records)
        return records

    def _read_shaped(self, values: Values, ids: NDArray[np.int64]) -> Records:
        shape = self._shape
        rows = values.rows(shape.row.itemsize)
        user, page, ad = (some.look_up(rows) for some in self._ids.values())
        kind = shape.kinds(rows)
        time_ms = shape.times(rows, kind)
        carried = self._take_ids(rows, user, ids)
        right = carried & _same(shape.write(rows, kind, {"user": user, "page": page, "ad": ad}), rows)
        right &= (values.lengths == shape.lengths[kind]) & (time_ms != NOTHING)
        event_type, ad_type = kind // len(AD_TYPES), kind % len(AD_TYPES)
        found = {
            "event_id": np.zeros(len(values)),
            "campaign": ad // self._population.ads_per_campaign,
            "event_time_ms": time_ms,
            "kind": np.where(event_type == VIEW, VIEW_EVENT, OTHER_EVENT),
            "ad": ad,
            "ad_type": ad_type,
            "event_type": event_type,
            "user": user,
            "page": page,
        }
        return _where(right, found)

    def _take_ids(
        self, rows: NDArray[np.bytes_], user: NDArray[np.int64], ids: NDArray[np.int64]
    ) -> NDArray[np.bool_] | np.bool_:
        """Checks that the id in each record is that of its key, and replaces it by the population's text."""
        if not self._population.carries_ids:
            return np.True_
        end = self._shape.places["user"] + UUID_LENGTH
        tails = rows.view(np.uint8).reshape(-1, rows.itemsize)[:, end - ID_LENGTH : end]
        octets = ids.astype(">i8").view(np.uint8).reshape(-1, 8)[:, 2:]
        own = np.frombuffer(octets.tobytes().hex().encode(), dtype=np.uint8).reshape(-1, ID_LENGTH)
        same = (tails == own).all(axis=1)
        tails[:] = self._tails[user].view(np.uint8).reshape(-1, ID_LENGTH)
        return np.asarray(same)

    def _read_slowly(self, value: bytes | None, row: int, into: Records) -> None:
        """An event is a JSON object that names a known ad, a known event type and a time in digits."""
        fields = _json_object(value)
        ad = self._ids["ad"].index.get(_text(fields, "ad_id"), NOTHING)
        event_type = _index(EVENT_TYPES, _text(fields, "event_type"))
        time = _text(fields, "event_time")
        if NOTHING in (ad, event_type) or not (time.isascii() and time.isdigit() and int(time) < YEAR_10000_MS):
            return
        into.kind[row] = VIEW_EVENT if event_type == VIEW else OTHER_EVENT
        into.campaign[row] = ad // self._population.ads_per_campaign
        into.event_time_ms[row] = int(time)
        into.ad[row], into.event_type[row] = ad, event_type
        into.ad_type[row] = _index(AD_TYPES, _text(fields, "ad_type"))
        into.user[row] = self._user(_text(fields, "user_id"), int(into.event_id[row]))
        into.page[row] = self._ids["page"].index.get(_text(fields, "page_id"), NOTHING)

    def _user(self, text: str, event_id: int) -> int:
        name, carried = text[: self._user_length], text[self._user_length :]
        own = f"{event_id:0{ID_LENGTH}x}" if self._population.carries_ids else ""
        return self._ids["user"].index.get(name, NOTHING) if carried == own else NOTHING


def _fields(at: dict[str, int], kind: str, size: int) -> np.dtype[np.void]:
    return np.dtype({"names": list(at), "formats": [kind] * len(at), "offsets": list(at.values()), "itemsize": size})


class _Ids:
    """Finds the number of a uuid by its first and last eight characters. The caller must verify the rest."""

    def __init__(self, ids: tuple[str, ...], at: int, row_size: int) -> None:
        self.index = {name: number for number, name in enumerate(ids)}
        self._pieces = _fields({"first": at, "last": at + len(ids[0]) - _WORD}, "<u8", row_size)
        rows = np.array([b" " * at + name.encode() for name in ids], dtype=f"S{row_size}")
        hashes = self._hash(rows)
        order = np.argsort(hashes)
        # The largest possible hash closes the list.
        self._hashes = np.append(hashes[order], np.uint64(2**64 - 1))
        self._numbers = np.append(order, 0)
        bits = len(ids).bit_length() + 5
        self._shift = np.uint64(64 - bits)
        self._starts = np.searchsorted(self._hashes, np.arange(1 << bits, dtype=np.uint64) << self._shift)
        self._steps = int(np.bincount(hashes >> self._shift).max())

    def look_up(self, rows: NDArray[np.bytes_]) -> NDArray[np.int64]:
        """Return the number of each row's uuid if the population has it, else any number.

        This searches sorted hashes from a start that their first bits decide: few steps, without branches that a CPU
        could mispredict.
        """
        hashes = self._hash(rows)
        place = self._starts[hashes >> self._shift]
        for _ in range(self._steps):
            place += self._hashes[place] < hashes
        return np.asarray(self._numbers[place])

    def _hash(self, rows: NDArray[np.bytes_]) -> NDArray[np.uint64]:
        pieces = rows.view(self._pieces)
        return np.asarray((pieces["first"] * np.uint64(0x9E3779B97F4A7C15)) ^ pieces["last"])


class _Shape:
    """The positions of all parts in a record of exactly the schema's shape."""

    def __init__(self, population: Population) -> None:
        ids = {"user": population.user_ids, "page": population.page_ids, "ad": population.ad_ids}
        examples = [example_json(population, ad_type, kind) for kind in EVENT_TYPES for ad_type in AD_TYPES]
        self.places = {part: examples[0].index(some[0].encode()) for part, some in ids.items()}
        self.lengths = np.array([len(example) for example in examples])
        self.time_at = np.array([example.index(b"0" * TIME_DIGITS) for example in examples])
        self.row = np.dtype(f"S{-(-int(self.lengths.max()) // _WORD) * _WORD}")
        self._parts = _fields(self.places, f"V{UUID_LENGTH}", self.row.itemsize)
        self._examples = np.array(examples, dtype=self.row)
        self._names = {part: _names(some) for part, some in ids.items()}
        self._discern(examples, self.places["ad"] + UUID_LENGTH)

    def _discern(self, examples: list[bytes], after_ad: int) -> None:
        """The third letter of an ad type and the first letter of an event type are unique."""
        self._ad_type_at = examples[0].index(b"ad_type", after_ad) + len('ad_type": "') + 2
        self._event_type_at = np.array([e.index(b"event_type") for e in examples[: len(AD_TYPES)]]) + len(
            'event_type": "'
        )
        self._ad_type_of, self._event_type_of = np.zeros(256, dtype=np.int64), np.zeros(256, dtype=np.int64)
        for number, name in enumerate(AD_TYPES):
            self._ad_type_of[ord(name[2])] = number
        for number, name in enumerate(EVENT_TYPES):
            self._event_type_of[ord(name[0])] = number

    def kinds(self, rows: NDArray[np.bytes_]) -> NDArray[np.int64]:
        """Return event type and ad type of each record as one number, assuming that it has the shape."""
        letters = rows.view(np.uint8)
        begin = _begins(rows)
        ad_type = self._ad_type_of[letters[begin + self._ad_type_at]]
        event_type = self._event_type_of[letters[begin + self._event_type_at[ad_type]]]
        return np.asarray(event_type * len(AD_TYPES) + ad_type)

    def times(self, rows: NDArray[np.bytes_], kind: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the event time of each record, -1 if it has other characters than digits."""
        begin = _begins(rows) + self.time_at[kind]
        words = _anywhere(rows, "<u8")
        overlap = 2 * _WORD - TIME_DIGITS
        first, last = words[begin], words[begin + _WORD - overlap]
        time_ms = _decimal(first) * 10 ** (_WORD - overlap) + _decimal(last) % 10 ** (_WORD - overlap)
        return np.where(_are_digits(first) & _are_digits(last), time_ms, NOTHING)

    def write(
        self, rows: NDArray[np.bytes_], kind: NDArray[np.int64], names: dict[str, NDArray[np.int64]]
    ) -> NDArray[np.bytes_]:
        """Write the records of these numbers, with the digits of time from `rows`."""
        written = self._examples[kind]
        parts = written.view(self._parts)
        for part, numbers in names.items():
            parts[part] = self._names[part][numbers]
        at = _begins(rows) + self.time_at[kind]
        digits = f"V{TIME_DIGITS}"
        _anywhere(written, digits)[at] = _anywhere(rows, digits)[at]
        return written


def _begins(rows: NDArray[np.bytes_]) -> NDArray[np.int64]:
    return np.arange(len(rows)) * rows.itemsize


def _anywhere(rows: NDArray[np.bytes_], kind: str) -> NDArray[Any]:
    """A view that reads or writes a value at any byte, whatever its alignment."""
    size = np.dtype(kind).itemsize
    return np.ndarray((max(0, rows.nbytes - size + 1),), kind, rows, 0, (1,))


def _same(some: NDArray[np.bytes_], others: NDArray[np.bytes_]) -> NDArray[np.bool_]:
    """Equality of whole rows, eight bytes at a time: much faster than numpy's own for bytes."""
    differences = some.view(np.uint64) != others.view(np.uint64)
    return np.asarray(~differences.reshape(len(some), some.itemsize // _WORD).any(axis=1))


def _are_digits(words: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Checks that all eight bytes are in 0x30..0x39: the high half is 3, and still is after adding 6."""
    high, threes = np.uint64(0xF0F0F0F0F0F0F0F0), np.uint64(0x3030303030303030)
    carried = (words + np.uint64(0x0606060606060606)) & high
    return np.asarray(((words & high) == threes) & (carried == threes))


def _decimal(words: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Eight ASCII digits as a number: pairs, then fours, then all. Digits come first in the low bytes."""
    ones = words - np.uint64(0x3030303030303030)
    pairs = (ones * np.uint64(10) + (ones >> np.uint64(8))) & np.uint64(0x00FF00FF00FF00FF)
    fours = (pairs * np.uint64(100) + (pairs >> np.uint64(16))) & np.uint64(0x0000FFFF0000FFFF)
    return ((fours * np.uint64(10_000) + (fours >> np.uint64(32))) & np.uint64(0xFFFFFFFF)).astype(np.int64)


def _where(right: NDArray[np.bool_], found: dict[str, NDArray[Any]]) -> Records:
    """The columns in their final types, with records of another shape cleared."""
    columns = {name: found[name].astype(kind) for name, kind in _DTYPES.items()}
    wrong = np.flatnonzero(~right)
    for name, column in columns.items():
        column[wrong] = NO_EVENT if name == "kind" else NOTHING
    return Records(**columns)


def _empty(count: int) -> Records:
    columns = {name: np.full(count, NOTHING, dtype=kind) for name, kind in _DTYPES.items()}
    columns["kind"][:] = NO_EVENT
    return Records(**columns)


def _json_object(value: bytes | None) -> dict[str, Any]:
    try:
        parsed = json.loads((value or b"").decode("utf-8", "replace"))  # engines replace broken UTF-8 in the same way
    except (ValueError, RecursionError):
        return {}
    return parsed if isinstance(parsed, dict) else {}


def _text(fields: dict[str, Any], name: str) -> str:
    value = fields.get(name)
    return value if isinstance(value, str) else ""


def _index(names: tuple[str, ...], name: str) -> int:
    return names.index(name) if name in names else NOTHING


def _names(ids: tuple[str, ...]) -> NDArray[np.void]:
    return np.array([name.encode() for name in ids], dtype=f"S{UUID_LENGTH}").view(f"V{UUID_LENGTH}")
