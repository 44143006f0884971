"""How a declaration is read: keys of tables, each mistake with the place where it stands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from harness.explain import nearest, wrong
from harness.model import UsageError

# Takes a value and where it stands, such as `event.fields.amount.from`; gives it as the program wants it.
Reader = Callable[[str, Any], Any]


class DeclarationError(UsageError):
    """A mistake in one place of a declaration; whoever knows the file adds its name."""


def expected(where: str, value: object, allowed: str, near: str = "") -> DeclarationError:
    return DeclarationError(wrong(where, value, allowed, near))


def read(
    table: Any, keys: Mapping[str, Reader], where: str, *, optional: frozenset[str] = frozenset()
) -> dict[str, Any]:
    """A table of known keys. What is left out and optional is not in the answer."""
    if not isinstance(table, dict):
        raise expected(where, table, "a table of keys")
    for key in table:
        if key not in keys:
            raise DeclarationError(
                f"{_at(where)} has no key {key!r}; the keys are {', '.join(keys)}{nearest(key, keys)}."
            )
    for key in keys:
        if key not in table and key not in optional:
            raise DeclarationError(f"{_at(where)} lacks the key {key!r}.")
    return {key: keys[key](f"{where}.{key}".lstrip("."), value) for key, value in table.items()}


def _at(where: str) -> str:
    """A table by its name in the file; what stands above all tables has none."""
    return f"[{where}]" if where else "it"


def text(where: str, value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise expected(where, value, "a text that is not empty")
    return value


def flag(where: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise expected(where, value, "true or false")
    return value


def table(where: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise expected(where, value, "a table of keys")
    return value


def one_of(*words: str) -> Reader:
    def reader(where: str, value: Any) -> str:
        if value not in words:
            raise expected(where, value, f"one of {', '.join(words)}", nearest(str(value), words))
        return str(value)

    return reader


def whole(low: int, high: int) -> Reader:
    def reader(where: str, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise expected(where, value, f"a whole number from {low:,} to {high:,}")
        return value

    return reader


def number(where: str, value: Any) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | Decimal) or not Decimal(value).is_finite():
        raise expected(where, value, "a number")
    return Decimal(value)


def texts(where: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        raise expected(where, value, "a list of texts")
    found = tuple(text(f"{where}[{index}]", item) for index, item in enumerate(value))
    if doubled := {item for item in found if found.count(item) > 1}:
        raise DeclarationError(f"{where} names {min(doubled)!r} twice; name each value once.")
    return found
