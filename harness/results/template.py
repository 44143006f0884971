"""`redis:template`: keys and fields of anybody's own pattern.

    results = "redis:template"
    key = "counts:{campaign}"             # a hash per campaign ...
    field = "{window}"                    # ... with a field per window
    key = "counts:{campaign}:{window}"    # or a string per cell, and no `field`

What stands at keys that fit no pattern, and is not ours, stays under its own name.
"""

from __future__ import annotations

from harness import observe
from harness.engines.template import pattern
from harness.observe import Row
from harness.results.base import HASH, Place, Results, window_start

PAGE = 1000


class Template(Results):
    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self._key = pattern(place.manifest.key)
        self._field = pattern(place.manifest.field) if place.manifest.field else None

    def rows(self) -> list[Row]:
        return [self._translated(row) for row in self._all()]

    def _all(self) -> list[Row]:
        """Where a cell is a string of its own, strings are results too; the ad table is ours."""
        rows = observe.scan(self._place.client)
        if self._field is not None:
            return rows
        client = self._place.client
        names = [key for key in client.scan_iter(count=PAGE, _type="string") if self._key.fullmatch(key)]
        found = []
        for start in range(0, len(names), PAGE):
            page = names[start : start + PAGE]
            found += [Row(k, "", v or "", "string") for k, v in zip(page, client.mget(page), strict=True)]
        told = {row.key for row in found}
        return [*found, *(row for row in rows if row.key not in told)]

    def _translated(self, row: Row) -> Row:
        key = self._key.fullmatch(row.key)
        if key is None or row.kind != (HASH if self._field else "string"):
            return row
        field = self._field.fullmatch(row.field) if self._field else None
        if self._field and field is None:
            return row
        names = {**key.groupdict(), **(field.groupdict() if field else {})}
        return Row(names["campaign"], window_start(names["window"], self._place), row.value, HASH)
