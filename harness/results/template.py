"""`redis:template`: keys and fields of anybody's own pattern.

    results = "redis:template"
    key = "counts:{campaign}"             # a hash per campaign ...
    field = "{window}"                    # ... with a field per window
    key = "counts:{campaign}:{window}"    # or a string per cell, and no `field`

What stands at keys that fit no pattern, and is not ours, stays under its own name.
"""

from __future__ import annotations

from collections.abc import Collection

from harness import observe
from harness.engines.template import ANYTHING, pattern
from harness.observe import ELSEWHERE, HASH, NO_RESULT, STRING, VANISHED, Row
from harness.results.base import Place, Results, window_start

BETWEEN = "\0"  # key and field


class Template(Results):
    def __init__(self, place: Place) -> None:
        super().__init__(place)
        key, field = place.manifest.key, place.manifest.field
        self._kind, self._campaigns = HASH if field else STRING, frozenset(place.campaigns)
        self._keys, self._cells = _Names(key, self._campaigns), _Names(f"{key}{BETWEEN}{field}", self._campaigns)

    def rows(self) -> list[Row]:
        return [self.translated(row) for row in observe.scan(self._place.client, self._place.tables)]

    def translated(self, row: Row) -> Row:
        if row.kind == self._kind and (names := self._cells.of(f"{row.key}{BETWEEN}{row.field}")):
            return Row(names["campaign"], window_start(names["window"], self._place), row.value, HASH)
        if row.kind not in (self._kind, VANISHED) and (names := self._keys.of(row.key)):
            if names.get("campaign") in self._campaigns and row.kind != HASH:
                return Row(names["campaign"], "", "", row.kind)
            return Row(row.key, "", f"a key of type {row.kind} where a {self._kind} belongs", NO_RESULT)
        is_elsewhere = row.kind == HASH and row.key in self._campaigns
        return row._replace(kind=ELSEWHERE) if is_elsewhere else row


class _Names:
    """Reads campaign and window off a text. What is no number is a window only beside a known campaign."""

    def __init__(self, text: str, campaigns: Collection[str]) -> None:
        self._pattern, self._loose, self._campaigns = pattern(text), pattern(text, ANYTHING), campaigns

    def of(self, text: str) -> dict[str, str]:
        found, loose = (
            match.groupdict() if (match := each.fullmatch(text)) else {} for each in (self._pattern, self._loose)
        )
        is_known = found.get("campaign") not in self._campaigns and loose.get("campaign") in self._campaigns
        return loose if is_known else found
