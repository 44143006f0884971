"""A change of the results, as far as looks can date it."""

from __future__ import annotations

from typing import NamedTuple


class Change(NamedTuple):
    """A look takes time, so that one which began before a moment may see after it what was written before."""

    at_ms: int  # the end of the look that saw the newest change
    since_ms: int  # something has changed after this: when the look before the one that saw it began
