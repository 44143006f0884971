"""Writes plain values as YAML, in block style. Every string that a reader could take for something else is quoted."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

PLAIN = re.compile(r"(?:--)?[A-Za-z/](?:[\w./-]|:(?=[\w/]))*", re.ASCII)
WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})  # of YAML 1.1, which kubectl reads
STEP = "  "


def documents(values: Sequence[Mapping[str, Any]]) -> str:
    """Return a stream of documents."""
    return "".join("---\n" + "".join(f"{line}\n" for line in _block(value, "")) for value in values)


def _block(value: Any, indent: str) -> Iterator[str]:
    """Yield the lines of a mapping or a list that is not empty."""
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from _entry(f"{indent}{_scalar(key)}:", each, indent + STEP)
        return
    for each in value:
        first, *others = _block(each, indent + STEP) if _is_nested(each) else [indent + STEP + _scalar(each)]
        yield f"{indent}- {first[len(indent + STEP) :]}"
        yield from others


def _entry(key: str, value: Any, indent: str) -> Iterator[str]:
    if _is_nested(value):
        yield key
        yield from _block(value, indent)
    else:
        yield f"{key} {_scalar(value)}"


def _is_nested(value: Any) -> bool:
    return isinstance(value, Mapping | list) and bool(value)


def _scalar(value: Any) -> str:
    if isinstance(value, Mapping | list):
        return "{}" if isinstance(value, Mapping) else "[]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    text = str(value)
    return text if PLAIN.fullmatch(text) and text.lower() not in WORDS else f'"{"".join(map(_escaped, text))}"'


def _escaped(letter: str) -> str:
    if letter in '"\\':
        return f"\\{letter}"
    return letter if letter.isascii() and letter.isprintable() else f"\\U{ord(letter):08x}"
