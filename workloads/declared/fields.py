"""The kinds of fields that an event may have, and their readers.

    [event.fields]
    visitor = { kind = "uuid", of = 1000 }
    country = { kind = "choice", values = ["de", "fr"], weights = [3, 1] }

To add a kind, write a class and a reader here, and extend draws.py, arrow.py, json_records.py and avro_records.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal as Exact
from typing import Any

from harness.util.suggest import nearest
from harness.util.toml_reader import MistakeError, expected, integer, one_of, read, table, text, texts

MOST_VALUES = 1_000_000
MOST_KEYS = 100_000
WIDEST = (1 << 31) - 1  # most values of one draw
LARGEST = 1 << 53  # every JSON reader keeps whole numbers up to this
MOST_DIGITS = 6
MOST_TEXTS = 10_000
LONGEST_TEXT = 1_000
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,62}")
# Names of our own columns, which no field may have.
RESERVED = ("event", "event_id", "opens", "closes")


@dataclass(frozen=True)
class Uuid:
    """One of `of` UUIDs, all equally likely."""

    of: int


@dataclass(frozen=True)
class Choice:
    """One of these texts, by weight."""

    values: tuple[str, ...]
    weights: tuple[int, ...]


@dataclass(frozen=True)
class Zipf:
    """One of `of` keys. The frequency of key k is proportional to 1 / k ** exponent."""

    of: int
    quarters: int  # the exponent in quarters: its power is a product of roots, which are the same on every machine
    prefix: str


@dataclass(frozen=True)
class Integer:
    low: int
    high: int


@dataclass(frozen=True)
class Decimal:
    """A number with so many decimal places, stored in units of the last place."""

    low: int
    high: int
    digits: int


@dataclass(frozen=True)
class Text:
    """One of `of` made-up texts of small letters and spaces, with a length in [shortest, longest]."""

    of: int
    shortest: int
    longest: int


@dataclass(frozen=True)
class Time:
    """The event's time. Each event has one."""

    form: str  # "ms" | "iso8601"


@dataclass(frozen=True)
class Nested:
    fields: Mapping[str, Field]


Named = Uuid | Choice | Zipf | Text  # drawn as the index of a text
Field = Named | Integer | Decimal | Time | Nested
Fields = Mapping[str, Field]


def leaves(fields: Fields, path: str = "") -> Iterator[tuple[str, Field]]:
    """Yield the path, such as `customer.country`, and the kind of every field that holds a value."""
    for name, field in fields.items():
        if isinstance(field, Nested):
            yield from leaves(field.fields, f"{path}{name}.")
        else:
            yield path + name, field


def time_path(fields: Fields) -> str:
    """Return the path of the event's time."""
    return next(path for path, field in leaves(fields) if isinstance(field, Time))


def read_fields(where: str, value: Any) -> dict[str, Field]:
    """Read the fields of an event. One of them must be its time."""
    fields = _read_names(where, value)
    for name in fields:
        if name.lower() in RESERVED:
            raise MistakeError(
                f"[{where}] calls a field {name!r}, which is a column that the oracle gets or gives "
                f"({', '.join(RESERVED)}); choose another name."
            )
    times = [path for path, field in leaves(fields) if isinstance(field, Time)]
    if len(times) != 1:
        found = " and ".join(times) or "none"
        raise MistakeError(f'[{where}] needs one field of kind = "time", the event\'s own; it has {found}.')
    return fields


def _read_names(where: str, value: Any) -> dict[str, Field]:
    names = table(where, value)
    if not names:
        raise MistakeError(f"[{where}] is empty; name at least one field.")
    for name in names:
        if not NAME.fullmatch(name):
            raise MistakeError(
                f"[{where}] calls a field {name!r}; a name is a letter, and then up to 62 letters, digits "
                "and underscores."
            )
    lower = [name.lower() for name in names]
    if doubled := {name for name in lower if lower.count(name) > 1}:
        raise MistakeError(f"[{where}] has two fields {min(doubled)!r}: SQL tells no large letters from small ones.")
    return {name: read_field(f"{where}.{name}", field) for name, field in names.items()}


def read_field(where: str, value: Any) -> Field:
    keys = table(where, value)
    if "kind" not in keys:
        raise MistakeError(f"[{where}] lacks the key 'kind'; the kinds are {', '.join(KINDS)}.")
    kind = keys["kind"]
    if not isinstance(kind, str) or kind not in KINDS:
        raise expected(f"{where}.kind", kind, f"one of {', '.join(KINDS)}", nearest(str(kind), KINDS))
    return KINDS[kind](where, {key: item for key, item in keys.items() if key != "kind"})


def _uuid(where: str, keys: dict[str, Any]) -> Field:
    return Uuid(**read(keys, {"of": integer(1, MOST_VALUES)}, where))


def _choice(where: str, keys: dict[str, Any]) -> Field:
    found = read(keys, {"values": distinct, "weights": _weights}, where, optional=frozenset({"weights"}))
    values = found["values"]
    weights = found.get("weights", (1,) * len(values))
    if len(weights) != len(values):
        raise MistakeError(
            f"[{where}] has {len(values)} values and {len(weights)} weights; give each value one weight."
        )
    return Choice(values, weights)


def distinct(where: str, value: Any) -> tuple[str, ...]:
    found = texts(where, value)
    if not found:
        raise expected(where, value, "at least one text")
    if doubled := {item for item in found if found.count(item) > 1}:
        raise MistakeError(f"{where} names {min(doubled)!r} twice; name each value once.")
    return found


def _weights(where: str, value: Any) -> tuple[int, ...]:
    if not isinstance(value, list) or not value:
        raise expected(where, value, "a list of whole numbers")
    found = tuple(integer(0, 1_000_000)(f"{where}[{index}]", item) for index, item in enumerate(value))
    if not any(found):
        raise expected(where, value, "at least one weight above 0")
    return found


def _zipf(where: str, keys: dict[str, Any]) -> Field:
    readers = {"of": integer(1, MOST_KEYS), "exponent": _quarters, "prefix": text}
    found = read(keys, readers, where, optional=frozenset({"exponent", "prefix"}))
    return Zipf(found["of"], found.get("exponent", 4), found.get("prefix", ""))


def _quarters(where: str, value: Any) -> int:
    quarters = _number(where, value) * 4
    if quarters != int(quarters) or not 1 <= quarters <= 12:
        raise expected(where, value, "a multiple of 0.25 from 0.25 to 3")
    return int(quarters)


def _number(where: str, value: Any) -> Exact:
    if isinstance(value, bool) or not isinstance(value, int | Exact) or not Exact(value).is_finite():
        raise expected(where, value, "a number")
    return Exact(value)


def _integer(where: str, keys: dict[str, Any]) -> Field:
    any_whole = integer(-LARGEST, LARGEST)
    found = read(keys, {"from": any_whole, "to": any_whole}, where)
    _check_range(where, found["from"], found["to"], "whole numbers")
    return Integer(found["from"], found["to"])


def _decimal(where: str, keys: dict[str, Any]) -> Field:
    found = read(
        keys, {"from": _number, "to": _number, "digits": integer(1, MOST_DIGITS)}, where, optional=frozenset({"digits"})
    )
    digits = found.get("digits", 2)
    low, high = (_units(f"{where}.{end}", found[end], digits) for end in ("from", "to"))
    _check_range(where, low, high, f"numbers with {digits} digits behind the point")
    return Decimal(low, high, digits)


def _units(where: str, value: Exact, digits: int) -> int:
    units = value.scaleb(digits)
    if units != int(units) or abs(units) > LARGEST:
        raise expected(
            where, str(value), f"a number of at most {digits} digits behind the point, that fits into 53 bits"
        )
    return int(units)


def _check_range(where: str, low: int, high: int, things: str) -> None:
    if not low <= high <= low + WIDEST - 1:
        raise MistakeError(
            f"[{where}] goes from {low:,} to {high:,} units; `to` is expected to be at least `from`, and no more than "
            f"{WIDEST:,} {things} in all."
        )


def _text(where: str, keys: dict[str, Any]) -> Field:
    length = integer(1, LONGEST_TEXT)
    found = read(keys, {"of": integer(1, MOST_TEXTS), "from": length, "to": length}, where, optional=frozenset({"of"}))
    _check_range(where, found["from"], found["to"], "letters")
    return Text(found.get("of", MOST_TEXTS), found["from"], found["to"])


def _time(where: str, keys: dict[str, Any]) -> Field:
    found = read(keys, {"as": one_of("ms", "iso8601")}, where, optional=frozenset({"as"}))
    return Time(found.get("as", "ms"))


def _object(where: str, keys: dict[str, Any]) -> Field:
    return Nested(read(keys, {"fields": _read_names}, where)["fields"])


KINDS: Mapping[str, Callable[[str, dict[str, Any]], Field]] = {
    "uuid": _uuid,
    "choice": _choice,
    "zipf": _zipf,
    "integer": _integer,
    "decimal": _decimal,
    "text": _text,
    "time": _time,
    "object": _object,
}
