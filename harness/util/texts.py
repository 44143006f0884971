"""Text of others in a sentence of ours: made readable, and cut where it is far too long. Standard library only."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

SHOWN = 200


def readable(octets: bytes) -> str:
    """Octets as text; those that are none under an escaped name, such as `\\xff`."""
    return octets.decode("utf-8", "backslashreplace")


def shown(text: str, most: int = SHOWN) -> str:
    """As much of a text as a person wants to see, and how long it is."""
    return text if len(text) <= most else f"{text[:most]}... ({len(text):,} characters)"


def quoted(text: str) -> str:
    """In quotes if a reader could take it for something else: a space at its end makes it another key."""
    return text if text and text.isprintable() and text == text.strip() else repr(text)


def named(error: Exception) -> str:
    """An error of somebody else's. Some quote a whole request and its answer: the beginning says it all."""
    return shown(f"{type(error).__name__}: {error}")


def printable(text: str) -> str:
    """Without what would steer a terminal or end a line: such characters under an escaped name, as `\\x1b`."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def many(count: int, one: str, several: str = "") -> str:
    """`1 round`, `2,000 rounds`; `several` where more than an s is another: `1 cell holds`, `2 cells hold`."""
    return f"{count:,} {one if count == 1 else several or one + 's'}"


def clock(moment_ms: int) -> str:
    """A moment as a person reads it, or the number where no calendar has it."""
    try:
        return f"{datetime.fromtimestamp(moment_ms / 1000, UTC):%H:%M:%S} UTC"
    except (OverflowError, ValueError, OSError):
        return f"of {moment_ms} ms"


def three_digits(value: float) -> str:
    """Three digits, and never an exponent: `0.00123`, `12.3`, `1,080`."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{Decimal(f'{value:.3g}'):f}"


def when_of_load(at_ms: float, load_ms: float) -> str:
    """A moment that counts from the beginning of a load, in words that are true before and after it, too."""
    if at_ms < 0:
        return f"{-at_ms / 1000:.1f} s before the load"
    if at_ms > load_ms:
        return f"{(at_ms - load_ms) / 1000:.1f} s after the end of the load"
    return f"{at_ms / 1000:.1f} s into the load"
