"""What all formats of declared records share: which records are events, and the columns of those."""

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

# Later or earlier than this is no time to any engine.
YEAR_1_MS, YEAR_10000_MS = -62_135_596_800_000, 253_402_300_800_000


class Format(Protocol):
    """Writes and reads the records of one declaration."""

    @property
    def poisons(self) -> tuple[str, ...]:
        """What a record can be instead of an event."""

    @property
    def schema(self) -> str:
        """Without which nobody can read a record; "" where it says itself what it holds."""

    def say(self, record: bytes) -> str:
        """For people: what a record holds."""

    def write(self, columns: Columns) -> list[bytes]:
        """The fields of `columns`, the time among them, as records."""

    def poison(self, kind: str, value: bytes) -> bytes | None:
        """A record that is no event, made of one that is."""

    def read(self, values: Sequence[bytes | None]) -> Events:
        """Those of the records that are events, whoever wrote them."""


class Events(NamedTuple):
    """Records that are events."""

    rows: NDArray[np.int64]  # which they are
    columns: Columns  # the fields of each, by path


class Columnar:
    """From records that were parsed one by one to columns. A field that no name or number of the declaration fits makes
    a record no event."""

    def __init__(self, fields: Fields, seed: int, getter: Callable[[str], Callable[[Any], Any]]) -> None:
        self._arrow = Arrow(fields, seed)
        self._fields = dict(leaves(fields))
        self._getters = {path: getter(path) for path in self._fields}

    def events(self, rows: list[int], parsed: list[Any]) -> Events:
        try:
            columns = self._columns(parsed)
        except (pa.ArrowInvalid, OverflowError):  # a number or a time that can't be; rare
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
    """What can be parsed at all, and which records that is."""
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
    """As `2026-11-23T09:30:00.125Z`."""
    return pc.strftime(pa.array(times_ms).cast(pa.timestamp("ms")), format="%Y-%m-%dT%H:%M:%SZ")


def from_iso8601(texts: list[str]) -> NDArray[np.int64]:
    return np.asarray(pa.array(texts, pa.string()).cast(pa.timestamp("ms", "UTC")).cast(pa.int64()))


def joined(parts: Iterator[str | pa.Array]) -> list[str | pa.Array]:
    """Constants that stand side by side are one."""
    found: list[str | pa.Array] = []
    for part in parts:
        if isinstance(part, str) and found and isinstance(found[-1], str):
            found[-1] += part
        else:
            found.append(part)
    return found
