"""How a whole number is spelled in results: in one way only, so that two spellings can't name one cell. Pure.

The canonical text is that of Redis itself: `0`, or digits that do not begin with 0, with `-` before them where the
number is negative, within 64 bits. `007`, `-0`, `+5`, `1_000`, ` 5` and digits of other alphabets are no numbers here.
"""

from __future__ import annotations

import re

from harness.util.texts import readable

_CANONICAL = re.compile(r"0|-?[1-9][0-9]{0,18}")  # a longer one does not fit, and is not even converted
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1


def whole(text: str | bytes) -> int | None:
    """The number; None for every other spelling, and for what does not fit into 64 bits."""
    text = readable(text) if isinstance(text, bytes) else text
    if not _CANONICAL.fullmatch(text):
        return None
    number = int(text)
    return number if _LEAST <= number <= _MOST else None
