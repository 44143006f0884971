"""Parse integers in results. Only one spelling is accepted, so that two spellings can't name one cell. Pure.

The canonical text is that of Redis: `0`, or digits without a leading 0, with `-` before them for a negative number,
within 64 bits. `007`, `-0`, `+5`, `1_000`, ` 5` and digits of other alphabets are rejected.
"""

from __future__ import annotations

import re

from harness.util.texts import readable

_CANONICAL = re.compile(r"0|-?[1-9][0-9]{0,18}")  # a longer one can't fit into 64 bits
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1


def parse_int64(text: str | bytes) -> int | None:
    """Return the integer, or None for any other spelling and for a value outside 64 bits."""
    text = readable(text) if isinstance(text, bytes) else text
    if not _CANONICAL.fullmatch(text):
        return None
    number = int(text)
    return number if _LEAST <= number <= _MOST else None
