"""`redis:compact`, our own schema: a hash per key, a field per window."""

from __future__ import annotations

from harness.model import TapeSpec
from harness.results import redis_scan
from harness.results.base import Observer, RedisStore, window_start
from harness.results.redis_scan import HASH, Row
from harness.results.sampler import RedisObserver


class Compact(RedisStore):
    form = "redis:compact"
    looks_for = "a hash named by the campaign, with a field for the start of each window (redis:compact)"

    def rows(self) -> list[Row]:
        rows = redis_scan.scan(self._location.client, self._location.tables)
        if self._location.manifest.window_key == "start":
            return rows
        named = {name for each in self._location.keys for name in (each, f"updated:{each}", f"sums:{each}")}
        return [
            row._replace(field=window_start(row.field, self._location))
            if row.kind == HASH and row.key in named
            else row
            for row in rows
        ]

    def observer(self, tape: TapeSpec) -> Observer | None:
        """Poll all keys with one request, which no other schema allows."""
        location = self._location
        if location.manifest.window_key != "start":
            return super().observer(tape)
        return RedisObserver(
            location.client,
            location.keys,
            tape,
            location.window_ms,
            location.watermark_ms,
            clock=location.clock,
            bookkeeping=[pattern for claim in location.manifest.sinks for pattern in claim.bookkeeping],
        )

    def snapshot(self) -> object:
        return redis_scan.counts_only(self._location.client, self._location.keys)
