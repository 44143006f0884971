"""Format foreign text for our messages: make it printable and shorten it. Standard library only."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

SHOWN = 200


def readable(octets: bytes) -> str:
    """Decode UTF-8; escape invalid bytes, as in `\\xff`."""
    return octets.decode("utf-8", "backslashreplace")


def shown(text: str, most: int = SHOWN) -> str:
    """Return the beginning of a long text together with its length."""
    return text if len(text) <= most else f"{text[:most]}... ({len(text):,} characters)"


def quoted(text: str) -> str:
    """Quote a text that could be misread, such as a key with a space at its end."""
    return text if text and text.isprintable() and text == text.strip() else repr(text)


def named(error: Exception) -> str:
    """Return class and message of a foreign error. Some quote a whole request and its reply: the beginning suffices."""
    return shown(f"{type(error).__name__}: {error}")


def printable(text: str) -> str:
    """Escape characters that control a terminal or end a line, as in `\\x1b`."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def many(count: int, one: str, several: str = "") -> str:
    """Return `1 round` or `2,000 rounds`. `several` is the plural if it takes more than an s: `2 cells hold`."""
    return f"{count:,} {one if count == 1 else several or one + 's'}"


def clock(moment_ms: int) -> str:
    """Return a timestamp as a time of day, or the number if no calendar holds it."""
    try:
        return f"{datetime.fromtimestamp(moment_ms / 1000, UTC):%H:%M:%S} UTC"
    except (OverflowError, ValueError, OSError):
        return f"of {moment_ms} ms"


def three_digits(value: float) -> str:
    """Format with three digits and never an exponent: `0.00123`, `12.3`, `1,080`."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{Decimal(f'{value:.3g}'):f}"


def when_of_load(at_ms: float, load_ms: float) -> str:
    """Describe a time relative to the load's start; also before the start and after the end."""
    if at_ms < 0:
        return f"{-at_ms / 1000:.1f} s before the load"
    if at_ms > load_ms:
        return f"{(at_ms - load_ms) / 1000:.1f} s after the end of the load"
    return f"{at_ms / 1000:.1f} s into the load"
