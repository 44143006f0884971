"""Shared parts of all formats of declared records: deciding which records are events, and reading their columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from workloads.declared.arrow import UNKNOWN, Arrow
from workloads.declared.draws import Columns
from workloads.declared.fields import Fields, Named, Time, leaves

# No engine accepts a time outside of this range.
YEAR_1_MS, YEAR_10000_MS = -62_135_596_800_000, 253_402_300_800_000


class Format(Protocol):
    """Writes and reads the records of one declaration."""

    @property
    def poisons(self) -> tuple[str, ...]:
        """The kinds of poison."""

    @property
    def schema(self) -> str:
        """The schema that is needed to read a record; "" for self-describing records."""

    def say(self, record: bytes) -> str:
        """Describe the content of a record for people."""

    def write(self, columns: Columns) -> list[bytes]:
        """Write the fields of `columns`, including the time, as records."""

    def poison(self, kind: str, value: bytes) -> bytes | None:
        """Turn an event's record into one that is no event."""

    def read(self, values: Sequence[bytes | None]) -> Events:
        """Return the records that are events, from any writer."""


class Events(NamedTuple):
    """Records that are events."""

    rows: NDArray[np.int64]  # indices of the records
    columns: Columns  # the fields by path


class Columnar:
    """Converts records that were parsed one by one to columns. A record with a text or number that its field can't have
    is no event.
    """

    def __init__(self, fields: Fields, seed: int, getter: Callable[[str], Callable[[Any], Any]]) -> None:
        self._arrow = Arrow(fields, seed)
        self._fields = dict(leaves(fields))
        self._getters = {path: getter(path) for path in self._fields}

    def events(self, rows: list[int], parsed: list[Any]) -> Events:
        try:
            columns = self._columns(parsed)
        except (pa.ArrowInvalid, OverflowError):  # an impossible number or time; rare
            sound = [place for place, event in enumerate(parsed) if self._is_sound(event)]
            rows, columns = [rows[place] for place in sound], self._columns([parsed[place] for place in sound])
        known = np.ones(len(rows), dtype=np.bool_)
        for path, field in self._fields.items():
            if isinstance(field, Named):
                known &= columns[path] != UNKNOWN
            elif isinstance(field, Time):
                known &= (columns[path] >= YEAR_1_MS) & (columns[path] < YEAR_10000_MS)
        return Events(np.array(rows, dtype=np.int64)[known], {path: each[known] for path, each in columns.items()})

    def _columns(self, parsed: list[Any]) -> dict[str, NDArray[np.int64]]:
        return {path: self._column(path, [*map(self._getters[path], parsed)]) for path in self._fields}

    def _column(self, path: str, values: list[Any]) -> NDArray[np.int64]:
        field = self._fields[path]
        if isinstance(field, Time) and field.form == "iso8601":
            return from_iso8601(values)
        return self._arrow.numbers(path, values)

    def _is_sound(self, event: Any) -> bool:
        try:
            self._columns([event])
        except (pa.ArrowInvalid, OverflowError):
            return False
        return True


def parsed_each(
    values: Sequence[bytes | None], parse: Callable[[bytes], Any], errors: tuple[type[Exception], ...]
) -> tuple[list[int], list[Any]]:
    """Parse each record. Return the indices of those that could be parsed, and their content."""
    rows, parsed = [], []
    for row, value in enumerate(values):
        if value:
            try:
                parsed.append(parse(value))
            except errors:
                continue
            rows.append(row)
    return rows, parsed


def of_struct(path: str) -> Callable[[Any], Any]:
    return attrgetter(path)


def of_dict(path: str) -> Callable[[Any], Any]:
    steps = [itemgetter(name) for name in path.split(".")]
    if len(steps) == 1:
        return steps[0]

    def get(event: Any) -> Any:
        for step in steps:
            event = step(event)
        return event

    return get


def iso8601(times_ms: NDArray[np.int64]) -> pa.Array:
    """Write times as `2026-11-23T09:30:00.125Z`."""
    return pc.strftime(pa.array(times_ms).cast(pa.timestamp("ms")), format="%Y-%m-%dT%H:%M:%SZ")


def from_iso8601(texts: list[str]) -> NDArray[np.int64]:
    return np.asarray(pa.array(texts, pa.string()).cast(pa.timestamp("ms", "UTC")).cast(pa.int64()))


def joined(parts: Iterator[str | pa.Array]) -> list[str | pa.Array]:
    """Join adjacent constants."""
    found: list[str | pa.Array] = []
    for part in parts:
        if isinstance(part, str) and found and isinstance(found[-1], str):
            found[-1] += part
        else:
            found.append(part)
    return found
