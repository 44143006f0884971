"""`redis:yahoo`, the schema of the original benchmark:

    campaigns            set of campaigns (ours)
    <campaign>           hash: start of the window -> key of the window; field `windows` -> key of a list
    <key of the list>    list of starts, the newest first
    <key of the window>  hash: seen_count, time_updated
    time_updated         list that some jobs write

Two tasks that create the same window at once leave a hash of counts to which no campaign refers: an orphan. Its rows
keep their own key, and the checks call it a phantom.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from harness.results import redis_scan
from harness.results.base import UPDATED, RedisStore, window_start
from harness.results.redis_scan import HASH, ORPHAN, Row

WINDOWS, COUNT, CHANGED = "windows", "seen_count", "time_updated"
LIST = "list"
ANY_ID = "-".join("[0-9a-f]" * length for length in (8, 4, 4, 4, 12))
NO_COUNT = f"no {COUNT}"  # a campaign refers to a hash without a count, or to none


class Yahoo(RedisStore):
    form = "redis:yahoo"
    looks_for = "a hash named by the campaign, whose fields lead to hashes with seen_count (redis:yahoo)"

    def patterns(self) -> Iterator[str]:
        """The keys of windows and lists are random ids."""
        yield from (ANY_ID, CHANGED)

    def is_there(self, row: Row) -> bool:
        """A window whose hash is not written yet has no count yet."""
        return row.value != NO_COUNT

    def rows(self) -> list[Row]:
        location = self._location
        rows = redis_scan.scan(location.client, location.tables)
        return translated(rows, location.keys, lambda text: window_start(text, location))


def translated(rows: list[Row], campaigns: Sequence[str], window_of: Callable[[str], str] = str) -> list[Row]:
    hashes: dict[str, dict[str, str]] = {}
    for row in rows:
        if row.kind == HASH:
            hashes.setdefault(row.key, {})[row.field] = row.value
    names = set(campaigns)
    lists = {fields[WINDOWS] for name, fields in hashes.items() if name in names and WINDOWS in fields}
    found, referred = [], set()
    for name in campaigns:
        for start, key in hashes.get(name, {}).items():
            if start == WINDOWS:
                continue
            referred.add(key)
            cell, window = hashes.get(key, {}), window_of(start)
            found.append(Row(name, window, cell.get(COUNT, NO_COUNT), HASH))
            if CHANGED in cell:
                found.append(Row(UPDATED + name, window, cell[CHANGED], HASH))
    told = {HASH: names | referred, LIST: lists | {CHANGED}}
    return [*found, *_others([row for row in rows if row.key not in told.get(row.kind, ())])]


def _others(rows: list[Row]) -> Iterator[Row]:
    """Yield rows to which no campaign refers. A hash that looks like a window's is an orphan, and yields one row."""
    orphans = {row.key for row in rows if row.kind == HASH and row.field == COUNT}
    for row in rows:
        if row.key not in orphans or row.kind != HASH:
            yield row
        elif row.field != CHANGED:
            yield row._replace(kind=ORPHAN) if row.field == COUNT else row
