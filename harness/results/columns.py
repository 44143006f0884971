"""Rows of a table as cells: a column for each key, one for the window, and one for each value.

Columns have the names of the question, or for ad views `campaign`, `window` and `count`; `columns` of a manifest says
which column stands for which name. A window may be a number of milliseconds or a time. A row that is no cell becomes a
row of its own, and the checks report it. So is a cell whose value is no whole number, under the name of its cell.

If a question has outputs of events, a row is one: rows are counted as `outputs`, and the other values may be texts or
NULL too.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, NamedTuple

from harness.engines.template import CAMPAIGN, EVENT_ID, NUMBERS, VALUE, WINDOW, numbers_of
from harness.results.base import ResultLocation, window_start
from harness.results.redis_scan import HASH, NO_RESULT, Row
from harness.util.integers import parse_int64
from workloads.base import NULL
from workloads.text_values import text_value

COUNT = "count"
OUTPUTS = "outputs"  # the name of the value that counts how often an event was output
# What every source of rows says of itself.
LOOKS_FOR = "rows of a table with a column for each key, the window and the value"
PRINTS = "the table holds rows such as"


class Wanted(NamedTuple):
    """The names that a table must have columns for."""

    texts: tuple[str, ...]  # the keys
    numbers: tuple[str, ...]  # of the window: one of these; empty if cells have none
    values: tuple[str, ...]


class Columns:
    """Reads rows by the names of their columns."""

    def __init__(self, location: ResultLocation) -> None:
        self._location = location
        parts = location.parts
        self._of = dict(location.manifest.columns)
        allowed = numbers_of(location.number, has_length=bool(location.length_ms))
        if parts:
            texts = tuple(name for name in parts[0] if name != VALUE)
            values = tuple(dict.fromkeys(each[VALUE] for each in parts))
            self._keys = {
                (*(each[name] for name in texts), each[VALUE]): key
                for key, each in zip(location.keys, parts, strict=True)
            }
        else:
            texts, values, self._keys = (CAMPAIGN,), (COUNT,), {}
        numbers = tuple(name for name in allowed if name not in values)
        self._are_outputs = location.number == EVENT_ID and OUTPUTS in values
        self.wanted = Wanted(texts, numbers, tuple(name for name in values if not self._counts(name)))

    def column_of(self, name: str) -> str:
        return self._of.get(name, name)

    def chosen(self, present: Iterable[str]) -> tuple[str, ...] | None:
        """Return the names for which a table with these columns has one; None if a name that is needed has none."""
        there = {
            name for name in (*self.wanted.texts, *NUMBERS, *self.wanted.values) if self.column_of(name) in present
        }
        numbers = [name for name in self.wanted.numbers if name in there]
        if not there.issuperset(self.wanted.texts) or not there.intersection(self.wanted.values):
            return None
        if bool(self.wanted.numbers) != bool(numbers):
            return None
        return (*self.wanted.texts, *numbers[:1], *(name for name in self.wanted.values if name in there))

    def missing(self, present: Sequence[str]) -> str:
        """Say which columns are needed and which are there."""
        one_of = [" or ".join(self.column_of(name) for name in self.wanted.numbers)] if self.wanted.numbers else []
        needed = [*map(self.column_of, self.wanted.texts), *one_of, *map(self.column_of, self.wanted.values)]
        return (
            f"columns {', '.join(needed)} are needed, and there are {', '.join(present) or 'none'}. Let `columns` in "
            f'the manifest say which column stands for which name, such as columns = {{ {needed[0]} = "NAME" }}'
        )

    def rows(self, named: Iterable[tuple[str, Mapping[str, Any]]]) -> Iterator[Row]:
        """Yield the cells of rows, each given with a name for its place and its values by our names."""
        for place, values in named:
            cells = self._cells(values)
            if cells is None:
                yield Row(place, "", json.dumps({name: as_stored(each) for name, each in values.items()}), NO_RESULT)
            else:
                yield from cells

    def together(self, rows: Iterable[Row]) -> list[Row]:
        """Count the outputs of each event. Two of them that differ in a value leave that value twice."""
        if not self._are_outputs:
            return [*rows]
        outputs = {key for names, key in self._keys.items() if names[-1] == OUTPUTS}
        counts, others = Counter[Row](), dict[Row, None]()
        for row in rows:
            if row.key in outputs:
                counts[row] += 1
            else:
                others[row] = None
        return [*(row._replace(value=str(count)) for row, count in counts.items()), *others]

    def _counts(self, name: str) -> bool:
        return self._are_outputs and name == OUTPUTS

    def _cells(self, values: Mapping[str, Any]) -> list[Row] | None:
        """Return the cells of one row; None if it has no key or no window."""
        texts = [text for name in self.wanted.texts if (text := text_of(values[name])) is not None]
        named = next((name for name in self.wanted.numbers if name in values), WINDOW)
        window = number_of(values[named]) if self.wanted.numbers else "0"
        if len(texts) < len(self.wanted.texts) or window is None:
            return None
        cells = []
        start = window_start(window, self._location, named)
        for name in (*self.wanted.values, *([OUTPUTS] if self._are_outputs else [])):
            if name not in values and not self._counts(name):
                continue
            number = "1" if self._counts(name) else self._value(values[name])
            key = self._keys.get((*texts, name)) if self._keys else texts[0]
            text = as_stored(values[name]) if number is None else number
            cells.append(Row(key or ":".join(texts), start, text, HASH))
        return cells

    def _value(self, value: object) -> str | None:
        number = number_of(value)
        if number is not None or not self._are_outputs:
            return number
        if value is None:
            return str(NULL)
        return str(text_value(value)) if isinstance(value, str) else None


def text_of(value: object) -> str | None:
    """Return a key as text; None for NULL and for what is no text or number."""
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def number_of(value: object) -> str | None:
    """Return a whole number, or a time as milliseconds since 1970, as text; None for anything else.

    A time without a zone is taken for UTC.
    """
    if isinstance(value, datetime):
        moment = value if value.tzinfo else value.replace(tzinfo=UTC)
        micros = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // _MICROSECOND
        return str(micros // 1000) if micros % 1000 == 0 else None
    if isinstance(value, Decimal) and value.is_finite() and value == value.to_integral_value():
        value = int(value)
    if isinstance(value, bool | float | date) or not isinstance(value, int | str):
        return None
    return str(value) if parse_int64(str(value)) is not None else None


def as_stored(value: object) -> str:
    return "NULL" if value is None else str(value)


_MICROSECOND = datetime.resolution
