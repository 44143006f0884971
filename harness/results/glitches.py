"""Values that polls saw for a while and that no reader could take for a count, with start and end.

A glitch is *unreadable* if it was in the place of a count, or a *stranger*: a hash of an unknown key. Its times
are those of polls: it lasted at most from the poll before the first sighting to the end.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from harness.util.texts import readable, shown

COLUMNS = ("kind", "campaign", "name", "text", "from_us", "until_us")
UNREADABLE, STRANGER = "unreadable", "stranger"
ANOTHER_TYPE = "a key of another type"
# A shorter stranger is taken for the first half of a rename.
LEAST_STAY_US = 1_000_000

Name = bytes | str


class Glitches:
    """Convert successive polls to one row per glitch."""

    def __init__(self) -> None:
        self._open: dict[tuple[int, Name], tuple[Name, int]] = {}  # -> the first text, and its time
        self._latest: dict[tuple[int, Name], Name] = {}
        self._strangers: dict[str, tuple[int, int]] = {}  # -> the first and the last time it was seen
        self._rows: list[tuple[str, int, str, str, int, int]] = []

    def __len__(self) -> int:
        return len(self._rows) + len(self._open)

    def seen(self, at_us: int, key: int, window: Name, text: Name) -> bool:
        """Record text in the place of a count, or, without a window, of a key's whole hash.

        Return True if it is new.
        """
        cell = key, window
        self._open.setdefault(cell, (text, at_us))
        news = self._latest.get(cell) != text
        self._latest[cell] = text
        return news

    def gone(self, at_us: int, key: int, window: Name) -> None:
        """Record that there is a count again, or nothing."""
        cell = key, window
        if cell in self._open:
            self._rows.append(self._row(cell, at_us))
            del self._open[cell], self._latest[cell]

    def strangers(self, at_us: int, keys: Collection[str]) -> None:
        """Record all hashes of unknown keys. One that stays to the end is left to the final results."""
        for key in self._strangers.keys() - set(keys):
            first_us, last_us = self._strangers.pop(key)
            if last_us - first_us >= LEAST_STAY_US:
                self._rows.append((STRANGER, -1, shown(key), "a hash", first_us, at_us))
        for key in keys:
            self._strangers[key] = self._strangers.get(key, (at_us, at_us))[0], at_us

    @property
    def columns(self) -> Mapping[str, Any]:
        """The columns of glitches.parquet. `until_us` 0: it was there at the last poll."""
        rows = [*self._rows, *(self._row(cell, 0) for cell in self._open)]
        return {name: [row[number] for row in rows] for number, name in enumerate(COLUMNS)}

    def _row(self, cell: tuple[int, Name], until_us: int) -> tuple[str, int, str, str, int, int]:
        (key, window), (text, from_us) = cell, self._open[cell]
        return UNREADABLE, key, _shown(window), _shown(text), from_us, until_us


def _shown(text: Name) -> str:
    return shown(readable(text) if isinstance(text, bytes) else text)
