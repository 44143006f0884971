"""How a mistake is answered: the key, the value, what is allowed, and the nearest right word."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path

from harness.util.texts import shown


def nearest(word: str, words: Iterable[str]) -> str:
    """` (nearest: 'window')`, or nothing when no word is near. Capitals make no word another one."""
    as_written = {each.casefold(): each for each in words}
    close = get_close_matches(word.casefold(), list(as_written), n=1)
    return f" (nearest: {as_written[close[0]]!r})" if close else ""


def wrong(key: str, value: object, allowed: str, near: str = "") -> str:
    return f"{key} = {short(value)} is not right: {allowed} is expected{near}."


def why(error: Exception) -> str:
    """Of an error of a file what the system says, without its number and the name that stands beside it already."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def short(value: object) -> str:
    """As it would be written in a program; of what is far too long, its beginning."""
    try:
        text = repr(value)
    except ValueError:  # Python writes no number of thousands of digits
        text = f"a {type(value).__name__} of thousands of digits"
    return shown(text)


def is_file(path: Path) -> bool:
    """No name of a file can be wrong: one that is too long for it names none."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def home(path: Path) -> Path:
    """With `~` as somebody's home, if there is such a somebody."""
    try:
        return path.expanduser()
    except RuntimeError:
        return path
