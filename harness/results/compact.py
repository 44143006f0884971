"""`redis:compact`, our own schema: a hash per campaign, a field per window."""

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
        rows = redis_scan.scan(self._place.client, self._place.tables)
        if self._place.manifest.window_key == "start":
            return rows
        named = {name for each in self._place.campaigns for name in (each, f"updated:{each}", f"sums:{each}")}
        return [
            row._replace(field=window_start(row.field, self._place)) if row.kind == HASH and row.key in named else row
            for row in rows
        ]

    def observer(self, tape: TapeSpec) -> Observer | None:
        """Poll all campaigns with one request, which no other schema allows."""
        place = self._place
        if place.manifest.window_key != "start":
            return super().observer(tape)
        return RedisObserver(
            place.client,
            place.campaigns,
            tape,
            place.window_ms,
            place.watermark_ms,
            clock=place.clock,
            bookkeeping=[pattern for claim in place.manifest.sinks for pattern in claim.bookkeeping],
        )

    def snapshot(self) -> object:
        return redis_scan.counts_only(self._place.client, self._place.campaigns)
