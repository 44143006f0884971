"""`redis:template`: keys and fields of a user's own pattern.

    results = "redis:template"
    key = "counts:{campaign}"             # a hash per campaign ...
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
from harness.results.base import Place, RedisStore, window_start
from harness.results.redis_scan import ELSEWHERE, HASH, NO_RESULT, STRING, VANISHED, Row


class Template(RedisStore):
    form = "redis:template"
    looks_for = "keys and fields of a pattern (redis:template)"

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        key, field = place.manifest.key, place.manifest.field
        self._kind, self._campaigns = HASH if field else STRING, frozenset(place.campaigns)
        self._keys, self._cells = (
            Layout(text, place.campaigns, place.parts) for text in (key, f"{key}{BETWEEN}{field}")
        )

    def patterns(self) -> Iterator[str]:
        yield from self._keys.patterns()

    def rows(self) -> list[Row]:
        return [self.translated(row) for row in redis_scan.scan(self._place.client, self._place.tables)]

    def translated(self, row: Row) -> Row:
        if row.kind == self._kind and (found := self._cells.of(f"{row.key}{BETWEEN}{row.field}")):
            key, window = found
            return Row(key, window_start(window, self._place), row.value, HASH)
        if row.kind not in (self._kind, VANISHED) and self._keys.fits(row.key):
            if row.kind != HASH and (key := self._keys.alone(row.key)):
                return Row(key, "", "", row.kind)
            return Row(row.key, "", f"a key of type {row.kind} where a {self._kind} belongs", NO_RESULT)
        is_elsewhere = row.kind == HASH and row.key in self._campaigns
        return row._replace(kind=ELSEWHERE) if is_elsewhere else row
