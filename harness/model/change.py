"""The time of a change of the results, as precisely as polls can date it."""

from __future__ import annotations

from typing import NamedTuple


class Change(NamedTuple):
    """The interval in which the results last changed.

    A poll takes time: one that began before a moment may still read what was written after that moment.
    """

    at_ms: int  # the end of the poll that read the newest change
    since_ms: int  # the start of the poll before it: the change is newer than this
