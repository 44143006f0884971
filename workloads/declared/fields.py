"""The kinds of fields that an event may have, and their readers.

    [event.fields]
    visitor = { kind = "uuid", of = 1000 }
    country = { kind = "choice", values = ["de", "fr"], weights = [3, 1] }

To add a kind, write a class here and its entry in KINDS, and extend draws.py, arrow.py, json_records.py and
avro_records.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal as Exact
from typing import Any

from harness.util.suggest import nearest
from harness.util.toml_key import TomlKey, read
from harness.util.toml_reader import MistakeError, OneOf, WholeNumber, expected, table, text, texts

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


@dataclass(frozen=True)
class FieldKind:
    """A kind of field: what it draws, its keys, and the field that their values make."""

    draws: str
    keys: Mapping[str, TomlKey]
    make: Callable[[str, dict[str, Any]], Field]


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
    of = KINDS[kind]
    return of.make(where, read({key: item for key, item in keys.items() if key != "kind"}, of.keys, where))


def _choice(where: str, found: dict[str, Any]) -> Field:
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
    found = tuple(WholeNumber(0, 1_000_000)(f"{where}[{index}]", item) for index, item in enumerate(value))
    if not any(found):
        raise expected(where, value, "at least one weight above 0")
    return found


def _quarters(where: str, value: Any) -> int:
    quarters = _number(where, value) * 4
    if quarters != int(quarters) or not 1 <= quarters <= 12:
        raise expected(where, value, "a multiple of 0.25 from 0.25 to 3")
    return int(quarters)


def _number(where: str, value: Any) -> Exact:
    if isinstance(value, bool) or not isinstance(value, int | Exact) or not Exact(value).is_finite():
        raise expected(where, value, "a number")
    return Exact(value)


def _integer(where: str, found: dict[str, Any]) -> Field:
    _check_range(where, found["from"], found["to"], "whole numbers")
    return Integer(found["from"], found["to"])


def _decimal(where: str, found: dict[str, Any]) -> Field:
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


def _text(where: str, found: dict[str, Any]) -> Field:
    _check_range(where, found["from"], found["to"], "letters")
    return Text(found.get("of", MOST_TEXTS), found["from"], found["to"])


TIME_FORMS = ("ms", "iso8601")

KINDS: Mapping[str, FieldKind] = {
    "uuid": FieldKind(
        "One of so many UUIDs, all equally likely.",
        {"of": TomlKey(WholeNumber(1, MOST_VALUES), "How many there are.", required=True, example="of = 1_000")},
        lambda _, found: Uuid(**found),
    ),
    "choice": FieldKind(
        "One of these texts.",
        {
            "values": TomlKey(
                distinct,
                "The texts, each once.",
                takes="a list of texts",
                required=True,
                example='values = ["de", "fr"]',
            ),
            "weights": TomlKey(
                _weights,
                "How often each comes, relative to the others.",
                "equally often",
                "a list of whole numbers, one for each value",
                "weights = [3, 1]",
            ),
        },
        _choice,
    ),
    "zipf": FieldKind(
        "One of so many keys: `prefix` and a number. Key k comes as often as 1 / k^exponent.",
        {
            "of": TomlKey(WholeNumber(1, MOST_KEYS), "How many keys there are.", required=True, example="of = 500"),
            "exponent": TomlKey(
                _quarters,
                "How uneven the keys are: the larger, the more often the first ones.",
                "1",
                "a multiple of 0.25 from 0.25 to 3",
                "exponent = 1.25",
            ),
            "prefix": TomlKey(text, "The text before the number.", example='prefix = "driver-"'),
        },
        lambda _, found: Zipf(found["of"], found.get("exponent", 4), found.get("prefix", "")),
    ),
    "integer": FieldKind(
        "A whole number, all equally likely.",
        {
            "from": TomlKey(
                WholeNumber(-LARGEST, LARGEST),
                "The smallest.",
                takes="-2^53 to 2^53",
                required=True,
                example="from = 1",
            ),
            "to": TomlKey(
                WholeNumber(-LARGEST, LARGEST),
                f"The largest. At most {WIDEST:,} numbers in all.",
                takes="-2^53 to 2^53",
                required=True,
                example="to = 6",
            ),
        },
        _integer,
    ),
    "decimal": FieldKind(
        "A number with decimal places, all equally likely.",
        {
            "from": TomlKey(_number, "The smallest.", takes="a number", required=True, example="from = 2.50"),
            "to": TomlKey(_number, "The largest.", takes="a number", required=True, example="to = 180.00"),
            "digits": TomlKey(WholeNumber(1, MOST_DIGITS), "How many decimal places.", "2", example="digits = 3"),
        },
        _decimal,
    ),
    "text": FieldKind(
        "One of so many made-up texts of small letters and spaces. One that is drawn twice ends in its number.",
        {
            "from": TomlKey(
                WholeNumber(1, LONGEST_TEXT), "The shortest length in letters.", required=True, example="from = 10"
            ),
            "to": TomlKey(
                WholeNumber(1, LONGEST_TEXT), "The longest length in letters.", required=True, example="to = 80"
            ),
            "of": TomlKey(WholeNumber(1, MOST_TEXTS), "How many there are.", f"{MOST_TEXTS:,}", example="of = 100"),
        },
        _text,
    ),
    "time": FieldKind(
        "When the event happened. Each event has exactly one such field.",
        {
            "as": TomlKey(
                OneOf(TIME_FORMS),
                "How it is written: milliseconds since 1970, or such as `2026-01-01T00:00:09.125Z`.",
                f'`"{TIME_FORMS[0]}"`',
                example='as = "iso8601"',
            )
        },
        lambda _, found: Time(found.get("as", TIME_FORMS[0])),
    ),
    "object": FieldKind(
        "An object with fields of its own.",
        {
            "fields": TomlKey(
                _read_names,
                "Its fields.",
                takes="a table of fields",
                required=True,
                example='fields = { city = { kind = "choice", values = ["Ulm", "Bonn"] } }',
            )
        },
        lambda _, found: Nested(found["fields"]),
    ),
}
