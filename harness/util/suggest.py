"""Messages for wrong input: the key, the value, what is allowed, and the nearest valid word."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path

from harness.util.texts import shown


def nearest(word: str, words: Iterable[str]) -> str:
    """Return ` (nearest: 'window')`, or "" if no word is near. Case is ignored."""
    as_written = {each.casefold(): each for each in words}
    close = get_close_matches(word.casefold(), list(as_written), n=1)
    return f" (nearest: {as_written[close[0]]!r})" if close else ""


def wrong(key: str, value: object, allowed: str, near: str = "") -> str:
    return f"{key} = {short(value)} is not right: {allowed} is expected{near}."


def why(error: Exception) -> str:
    """Return the reason of an error; for an OSError without its number and file name, which the caller prints."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def short(value: object) -> str:
    """Return the repr of a value, shortened if it is very long."""
    try:
        text = repr(value)
    except ValueError:  # Python refuses to print an integer of thousands of digits
        text = f"a {type(value).__name__} of thousands of digits"
    return shown(text)


def is_file(path: Path) -> bool:
    """Return False instead of raising for a path that can't exist, such as a name that is too long."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def home(path: Path) -> Path:
    """Expand `~`, or return the path unchanged if there is no such user."""
    try:
        return path.expanduser()
    except RuntimeError:
        return path
