"""`redis:template`: keys and fields of a user's own pattern.

    results = "redis:template"
    key = "counts:{campaign}"             # a hash per key ...
    field = "{window}"                    # ... with a field per window
    key = "counts:{campaign}:{window}"    # or a string per cell, and no `field`
    key = "rides:{city}:{end}"            # or a hash per city and window ...
    field = "{value}"                     # ... with a field per value

Keys that fit no pattern, and are not ours, stay under their own names.
"""

from __future__ import annotations

from collections.abc import Iterator

from harness.engines.template import BETWEEN, Layout
from harness.results import redis_scan
from harness.results.base import RedisStore, ResultLocation, window_start
from harness.results.redis_scan import ELSEWHERE, HASH, NO_RESULT, STRING, VANISHED, Row


class Template(RedisStore):
    form = "redis:template"
    looks_for = "keys and fields of a pattern (redis:template)"

    def __init__(self, location: ResultLocation) -> None:
        super().__init__(location)
        key, field = location.manifest.key, location.manifest.field
        self._kind, self._names = HASH if field else STRING, frozenset(location.keys)
        self._keys, self._cells = (
            Layout(text, location.keys, location.parts) for text in (key, f"{key}{BETWEEN}{field}")
        )

    def patterns(self) -> Iterator[str]:
        yield from self._keys.patterns()

    def rows(self) -> list[Row]:
        return [self.translated(row) for row in redis_scan.scan(self._location.client, self._location.tables)]

    def translated(self, row: Row) -> Row:
        if row.kind == self._kind and (found := self._cells.of(f"{row.key}{BETWEEN}{row.field}")):
            key, window = found
            return Row(key, window_start(window, self._location), row.value, HASH)
        if row.kind not in (self._kind, VANISHED) and self._keys.fits(row.key):
            if row.kind != HASH and (key := self._keys.alone(row.key)):
                return Row(key, "", "", row.kind)
            return Row(row.key, "", f"a key of type {row.kind} where a {self._kind} belongs", NO_RESULT)
        is_elsewhere = row.kind == HASH and row.key in self._names
        return row._replace(kind=ELSEWHERE) if is_elsewhere else row
