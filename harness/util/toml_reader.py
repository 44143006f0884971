"""Reads TOML manifests and declarations: tables of known keys; each error names the place in the file."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.model import UsageError
from harness.util.suggest import nearest, wrong

# Takes the path of a value, such as `event.fields.amount.from`, and the value; returns the converted value.
Reader = Callable[[str, Any], Any]


class MistakeError(UsageError):
    """A mistake in one place of a file. The caller adds the file's name."""


def expected(where: str, value: object, allowed: str, near: str = "") -> MistakeError:
    return MistakeError(wrong(where, value, allowed, near))


def text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise MistakeError(f"it can't be read ({error.strerror}); give a file that you may read.") from error
    except ValueError as error:
        raise MistakeError(f"it is not TOML: {error}.") from error


def parsed(content: str, number: Callable[[str], Any] = float) -> dict[str, Any]:
    """Parse TOML. `number` converts decimals: to float, or to an exact type where the caller needs one."""
    try:
        return tomllib.loads(content, parse_float=number)
    except (ValueError, RecursionError) as error:
        raise MistakeError(f"it is not TOML: {error}.") from error


def read(value: Any, keys: Mapping[str, Reader], where: str, *, optional: Collection[str] = ()) -> dict[str, Any]:
    """Read a table of known keys. An optional key that is missing is missing from the result."""
    found = table(where, value)
    for key in found:
        if key not in keys:
            raise MistakeError(f"{_at(where)} has no key {key!r}; the keys are {', '.join(keys)}{nearest(key, keys)}.")
    for key in keys:
        if key not in found and key not in optional:
            raise MistakeError(f"{_at(where)} needs the key {key!r}, which is missing.")
    return {key: keys[key](f"{where}.{key}".lstrip("."), each) for key, each in found.items()}


def _at(where: str) -> str:
    """Return the table's name as the file writes it; top-level keys have no table name."""
    return f"[{where}]" if where else "it"


def text(where: str, value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise expected(where, value, "a text that is not empty")
    return value


def texts(where: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise expected(where, value, "a list of texts")
    return tuple(text(f"{where}[{index}]", item) for index, item in enumerate(value))


def flag(where: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise expected(where, value, "true or false")
    return value


def table(where: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise expected(where, value, "a table of keys")
    return value


def table_of_texts(where: str, value: Any) -> dict[str, str]:
    return {name: text(f"{where}.{name}", each) for name, each in table(where, value).items()}


@dataclass(frozen=True)
class OneOf:
    """A reader of one of these words."""

    words: tuple[str, ...]

    def __call__(self, where: str, value: Any) -> str:
        if value not in self.words:
            near = nearest(value, self.words) if isinstance(value, str) else ""
            raise expected(where, value, f"one of {', '.join(self.words)}", near)
        return str(value)


@dataclass(frozen=True)
class SomeOf:
    """A reader of a list of some of these words."""

    words: tuple[str, ...]

    def __call__(self, where: str, value: Any) -> tuple[str, ...]:
        one = OneOf(self.words)
        return tuple(one(f"{where}[{index}]", item) for index, item in enumerate(texts(where, value)))


def int_or_none(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


@dataclass(frozen=True)
class WholeNumber:
    """A reader of a whole number. `taken` returns a value as one; None: it is none."""

    low: int
    high: int
    taken: Callable[[Any], int | None] = int_or_none

    def __call__(self, where: str, value: Any) -> int:
        number = self.taken(value)
        if number is None or not self.low <= number <= self.high:
            raise expected(where, value, f"a whole number from {self.low:,} to {self.high:,}")
        return number
