"""The reference job of sessions: one plain process that keeps every session of every visitor.

    python reference_sessions.py CONFIG.json

A visit may begin a session, join one, begin it earlier, or merge two. A session is named by its first visit, thus its
name disappears when it begins earlier.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from dataclasses import asdict, dataclass
from typing import cast

import msgspec
import redis

from workloads.jobs import plain_process
from workloads.jobs.progress_log import now_ms
from workloads.jobs.redis_results import connect, key_of, updated_key, write_fields
from workloads.jobs.run_config import read_config
from workloads.page_visits.jobs.visits import DIFFERENT, GAP_MS, PAGES

STATE = "reference:sessions"  # a hash: visitor -> all sessions


class Visit(msgspec.Struct):
    """The fields of an event that the query needs. A record without them is unusable."""

    visitor: str
    page: str
    seen_at: int


decode = msgspec.json.Decoder(Visit).decode


@dataclass
class Session:
    opens: int
    last: int
    visits: int
    pages: list[str]  # distinct pages


class Sessions:
    """All sessions of each visitor, and the changes that Redis does not have yet."""

    def __init__(self) -> None:
        self.of: dict[str, list[Session]] = defaultdict(list)
        self.gone: set[tuple[str, int]] = set()
        self.changed: set[str] = set()
        self.unusable = 0

    def add(self, value: bytes | None) -> None:
        try:
            visit = decode(value or b"")
        except (msgspec.DecodeError, UnicodeDecodeError):
            self.unusable += 1
            return
        new = Session(visit.seen_at, visit.seen_at, 1, [visit.page])
        apart = []
        for old in self.of[visit.visitor]:
            if old.opens - GAP_MS <= visit.seen_at <= old.last + GAP_MS:
                self.gone.add((visit.visitor, old.opens))
                new = joined(old, new)
            else:
                apart.append(old)
        self.of[visit.visitor] = [*apart, new]
        self.gone.discard((visit.visitor, new.opens))
        self.changed.add(visit.visitor)

    def restore(self, client: redis.Redis) -> None:
        """Load the state of the last transaction."""
        for visitor, text in cast(dict[str, str], client.hgetall(STATE)).items():
            self.of[visitor] = [Session(**each) for each in json.loads(text)]

    def write(self, transaction: redis.client.Pipeline) -> None:
        at_ms = now_ms()
        for visitor, opens in self.gone:
            for name in (PAGES, DIFFERENT):
                key = key_of(name, visitor)
                transaction.hdel(key, str(opens))
                transaction.hdel(updated_key(key), str(opens))
        for visitor in self.changed:
            sessions = self.of[visitor]
            transaction.hset(STATE, visitor, json.dumps([asdict(each) for each in sessions]))
            values = {
                PAGES: {str(each.opens): each.visits for each in sessions},
                DIFFERENT: {str(each.opens): len(each.pages) for each in sessions},
            }
            for name, fields in values.items():
                write_fields(transaction, key_of(name, visitor), fields, at_ms)
        self.gone.clear()
        self.changed.clear()


def joined(one: Session, other: Session) -> Session:
    pages = list(dict.fromkeys([*one.pages, *other.pages]))
    return Session(min(one.opens, other.opens), max(one.last, other.last), one.visits + other.visits, pages)


def main(config_path: str) -> None:
    config = read_config(config_path)
    plain_process.run(config, connect(config), Sessions(), plain_process.value_of)


if __name__ == "__main__":
    main(sys.argv[1])
