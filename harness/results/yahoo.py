"""`redis:yahoo`, the schema of the original benchmark:

    campaigns            set of campaigns (ours)
    <campaign>           hash: start of the window -> key of the window; field `windows` -> key of a list
    <key of the list>    list of starts, the newest first
    <key of the window>  hash: seen_count, time_updated
    time_updated         list that some jobs write

Two tasks that make the same window at once leave a hash of counts to which no campaign refers. It stays in the rows
under its own key, where the checks call it a phantom.
"""

from __future__ import annotations

from harness import observe
from harness.observe import Row
from harness.results.base import HASH, UPDATED, Place, window_start

WINDOWS, COUNT, CHANGED = "windows", "seen_count", "time_updated"


class Yahoo:
    def __init__(self, place: Place) -> None:
        self._place = place

    def rows(self) -> list[Row]:
        return translated(observe.scan(self._place.client), self._place)

    def snapshot(self) -> object:
        return self.rows()

    def close(self) -> None:
        """Nothing of its own is open."""


def translated(rows: list[Row], place: Place) -> list[Row]:
    hashes: dict[str, dict[str, str]] = {}
    for row in rows:
        if row.kind == HASH:
            hashes.setdefault(row.key, {})[row.field] = row.value
    names = set(place.campaigns)
    lists = {fields[WINDOWS] for name, fields in hashes.items() if name in names and WINDOWS in fields}
    found, referred = [], set()
    for name in place.campaigns:
        for start, key in hashes.get(name, {}).items():
            if start == WINDOWS:
                continue
            referred.add(key)
            cell, window = hashes.get(key, {}), window_start(start, place)
            found.append(Row(name, window, cell.get(COUNT, f"no {COUNT}"), HASH))
            if CHANGED in cell:
                found.append(Row(UPDATED + name, window, cell[CHANGED], HASH))
    ours = {*names, *referred, *lists, CHANGED}
    return [*found, *(row for row in rows if row.key not in ours)]
