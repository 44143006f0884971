"""The reference job of top pages: one plain process that keeps the views of each page and window.

    python reference.py CONFIG.json

Each change of the first five is in Redis at once: a page that loses its place is deleted there.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from typing import cast

import msgspec
import redis

from workloads.jobs import plain_process
from workloads.jobs.progress_log import now_ms
from workloads.jobs.redis_results import connect, key_of, updated_key, write_fields
from workloads.jobs.run_config import read_config
from workloads.top_pages.jobs.ranked import PLACE, VIEWS, Ranked, opens_of, top

STATE = "reference:views:"  # followed by the start of a window: a hash of pages


class View(msgspec.Struct):
    """The fields of an event that the query needs. A record without them is unusable."""

    page: str
    viewed_at: int


decode = msgspec.json.Decoder(View).decode


class Pages:
    """The views of each window, and what Redis does not have yet."""

    def __init__(self) -> None:
        self.views: dict[int, Counter[str]] = defaultdict(Counter)
        self.shown: dict[int, list[Ranked]] = {}  # in Redis
        self.changed: dict[int, set[str]] = defaultdict(set)  # pages
        self.unusable = 0

    def add(self, value: bytes | None) -> None:
        try:
            view = decode(value or b"")
        except (msgspec.DecodeError, UnicodeDecodeError):
            self.unusable += 1
            return
        opens = opens_of(view.viewed_at)
        self.views[opens][view.page] += 1
        self.changed[opens].add(view.page)

    def restore(self, client: redis.Redis) -> None:
        """Load the state of the last transaction."""
        for key in client.scan_iter(f"{STATE}*", count=5000):
            opens = int(key.removeprefix(STATE))
            views = cast(dict[str, str], client.hgetall(key))
            self.views[opens] = Counter({page: int(count) for page, count in views.items()})
            self.shown[opens] = top(self.views[opens])

    def write(self, transaction: redis.client.Pipeline) -> None:
        at_ms = now_ms()
        for opens, pages in self.changed.items():
            views, field = self.views[opens], str(opens)
            transaction.hset(f"{STATE}{opens}", mapping={page: views[page] for page in pages})
            ranked = top(views)
            for page in {each.page for each in self.shown.get(opens, ())} - {each.page for each in ranked}:
                for name in (PLACE, VIEWS):
                    transaction.hdel(key_of(name, page), field)
                    transaction.hdel(updated_key(key_of(name, page)), field)
            for page, place, count in ranked:
                write_fields(transaction, key_of(PLACE, page), {field: place}, at_ms)
                write_fields(transaction, key_of(VIEWS, page), {field: count}, at_ms)
            self.shown[opens] = ranked
        self.changed.clear()


def main(config_path: str) -> None:
    config = read_config(config_path)
    plain_process.run(config, connect(config), Pages(), plain_process.value_of)


if __name__ == "__main__":
    main(sys.argv[1])
