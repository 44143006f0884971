"""How a manifest is read: keys of tables, each mistake with the key whose value it is."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from harness.explain import nearest, wrong

# Takes (key, value) and gives the value as the model wants it, or raises ManifestError.
Reader = Callable[[str, Any], Any]


class ManifestError(Exception):
    """A mistake in one place of a manifest; whoever knows the file adds its name."""


def read_table(
    table: Any, keys: Mapping[str, tuple[Reader, bool]], *, where: str, has: Collection[str] = ()
) -> dict[str, Any]:
    """`has`: the keys that are there already."""
    if not isinstance(table, dict):
        raise expected(where.rstrip("."), table, "a table of keys")
    for key in table:
        if key not in keys:
            raise ManifestError(
                f"unknown key {where + key!r} (= {table[key]!r}); the keys are {', '.join(sorted(keys))}"
                f"{nearest(key, keys)}."
            )
    for key, (_, required) in keys.items():
        if required and key not in table and key not in has:
            raise ManifestError(f"the key {where + key!r} is missing.")
    return {key: keys[key][0](where + key, value) for key, value in table.items()}


def expected(key: str, value: object, allowed: str, near: str = "") -> ManifestError:
    return ManifestError(wrong(key, value, allowed, near))


def text(key: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise expected(key, value, "a non-empty text")
    return value


def flag(key: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise expected(key, value, "true or false")
    return value


def seconds(key: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        raise expected(key, value, "a number of seconds above 0")
    return float(value)


def texts(key: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise expected(key, value, "a list of texts")
    return tuple(text(f"{key}[{index}]", item) for index, item in enumerate(value))


def one_of(*words: str) -> Reader:
    def read(key: str, value: Any) -> str:
        if value not in words:
            raise expected(key, value, f"one of {', '.join(words)}", nearest(str(value), words))
        return str(value)

    return read


def some_of(*words: str) -> Reader:
    def read(key: str, value: Any) -> tuple[str, ...]:
        return tuple(one_of(*words)(f"{key}[{index}]", item) for index, item in enumerate(texts(key, value)))

    return read


def table_of_texts(key: str, value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise expected(key, value, "a table of texts")
    return {name: text(f"{key}.{name}", word) for name, word in value.items()}
