"""How a whole number is spelled in results: in one way only, so that two spellings can't name one cell. Pure.

The canonical text is that of Redis itself: `0`, or digits that do not begin with 0, with `-` before them where the
number is negative, within 64 bits. `007`, `-0`, `+5`, `1_000`, ` 5` and digits of other alphabets are no numbers here.
"""

from __future__ import annotations

import re

_CANONICAL = re.compile(r"0|-?[1-9][0-9]{0,18}")  # a longer one does not fit, and is not even converted
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1
SHOWN = 200


def whole(text: str | bytes) -> int | None:
    """The number; None for every other spelling, and for what does not fit into 64 bits."""
    text = readable(text) if isinstance(text, bytes) else text
    if not _CANONICAL.fullmatch(text):
        return None
    number = int(text)
    return number if _LEAST <= number <= _MOST else None


def readable(octets: bytes) -> str:
    """Octets as text; those that are none under an escaped name, such as `\\xff`."""
    return octets.decode("utf-8", "backslashreplace")


def shown(text: str) -> str:
    """As much of a text as a person wants to see, and how long it is."""
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}... ({len(text):,} characters)"
