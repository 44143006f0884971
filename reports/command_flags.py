"""Values of scenario keys as words of a command line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def flag(key: str, value: Any) -> list[str]:
    """Return the words of a flag on the command line."""
    name = "--" + key.replace("_", "-")
    if isinstance(value, Mapping):
        return flag(key, [f"{each}={text}" for each, text in value.items()])
    if isinstance(value, list | tuple):
        return [word for text in value for word in (name, str(text))]
    if isinstance(value, bool):
        return [name] if value else ["--no" + name[1:]]
    return [name, number(value)]


def number(value: Any) -> str:
    return f"{value:.15g}" if isinstance(value, float) else str(value)
