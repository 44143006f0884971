"""`redis:compact`, our own schema: a hash per campaign, a field per window."""

from __future__ import annotations

from harness import observe
from harness.observe import HASH, Row
from harness.results.base import Results, window_start


class Compact(Results):
    def rows(self) -> list[Row]:
        rows = observe.scan(self._place.client, self._place.tables)
        if self._place.manifest.window_key == "start":
            return rows
        named = {name for each in self._place.campaigns for name in (each, f"updated:{each}", f"sums:{each}")}
        return [
            row._replace(field=window_start(row.field, self._place)) if row.kind == HASH and row.key in named else row
            for row in rows
        ]

    def snapshot(self) -> object:
        return observe.counts_only(self._place.client, self._place.campaigns)
