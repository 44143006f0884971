"""How a mistake is answered: the key, the value, what is allowed, and the nearest right word."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(word: str, words: Iterable[str]) -> str:
    """` (nearest: 'window')`, or nothing when no word is near."""
    close = get_close_matches(word, list(words), n=1)
    return f" (nearest: {close[0]!r})" if close else ""


def wrong(key: str, value: object, allowed: str, near: str = "") -> str:
    return f"{key} = {value!r} is not right: {allowed} is expected{near}."
