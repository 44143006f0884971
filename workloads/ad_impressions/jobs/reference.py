"""The reference job: one plain process that consumes, counts, and writes counts and offsets in one Redis transaction.

It is exactly once by construction: a crash loses the transaction with its offsets or keeps it with them. It uses no
framework, so that it is the baseline that a framework on this machine has to beat.

    python reference.py CONFIG.json
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from typing import Any, cast

import msgspec
import redis

from workloads.ad_impressions.jobs.ads import read_ads
from workloads.ad_impressions.jobs.id_sums import Sums, add_id, id_of, read, spell, sums_key
from workloads.jobs import plain_process
from workloads.jobs.progress_log import now_ms
from workloads.jobs.redis_results import connect, write_fields
from workloads.jobs.run_config import read_config

YEAR_10000_MS = 253_402_300_800_000

Cell = tuple[str, int]


class Event(msgspec.Struct):
    """The fields of an event that the query needs. A missing or null field makes it unusable."""

    ad_id: str
    event_type: str
    event_time: str


class IdentifiedEvent(Event):
    """In checksum mode the user id ends with the id of the event."""

    user_id: str


Decode = Callable[[bytes], Event]
decode: Decode = msgspec.json.Decoder(Event).decode
decode_with_user: Decode = msgspec.json.Decoder(IdentifiedEvent).decode


class Counts:
    """Totals per cell, and the set of cells that Redis does not have yet."""

    def __init__(self, ads: Mapping[str, str], window_ms: int, checksum: bool = False) -> None:
        self.ads = ads
        self.window_ms = window_ms
        self.sums: dict[Cell, Sums] = {}  # stays empty without checksums
        self.checksum = checksum
        self._decode = decode_with_user if checksum else decode
        self.totals: Counter[Cell] = Counter()
        self.changed: set[Cell] = set()
        self.unusable = 0

    def add(self, value: bytes | None) -> None:
        event = parse(value, self._decode)
        if event and event.event_type != "view":
            return
        campaign = self.ads.get(event.ad_id) if event else None
        if event is None or campaign is None or not is_time(event.event_time):
            self.unusable += 1
            return
        event_time_ms = int(event.event_time)
        cell = campaign, event_time_ms - event_time_ms % self.window_ms
        self.totals[cell] += 1
        if isinstance(event, IdentifiedEvent):
            self.sums[cell] = add_id(self.sums.get(cell, (0, 0)), id_of(event.user_id))
        self.changed.add(cell)

    def restore(self, client: redis.Redis) -> None:
        """Load the counts of the last transaction."""
        for campaign in cast(set[str], client.smembers("campaigns")):
            for window, count in client.hgetall(campaign).items():
                self.totals[campaign, int(window)] = int(count)
            if self.checksum:
                saved_sums = cast(dict[str, str], client.hgetall(sums_key(campaign)))
                self.sums |= {(campaign, int(window)): read(sums) for window, sums in saved_sums.items()}

    def write(self, transaction: redis.client.Pipeline) -> None:
        at_ms = now_ms()
        windows: dict[str, list[int]] = defaultdict(list)
        for campaign, window in self.changed:
            windows[campaign].append(window)
        for campaign, starts in windows.items():
            totals = {str(start): self.totals[campaign, start] for start in starts}
            write_fields(transaction, campaign, totals, at_ms)
            if self.checksum:
                sums: dict[Any, Any] = {str(start): spell(self.sums[campaign, start]) for start in starts}
                transaction.hset(sums_key(campaign), mapping=sums)
        self.changed.clear()


def parse(value: bytes | None, decode: Decode = decode) -> Event | None:
    """Parse a record; None if it is no event. Broken UTF-8 is replaced as in Spark, and the rest decides."""
    if value is None:
        return None
    try:
        return decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    try:
        return decode(value.decode("utf-8", "replace").encode())
    except msgspec.DecodeError:
        return None


def is_time(text: str) -> bool:
    return text.isascii() and text.isdecimal() and int(text) < YEAR_10000_MS


def main(config_path: str) -> None:
    config = read_config(config_path)
    client = connect(config)
    counts = Counts(read_ads(client), config["window_ms"], config["checksum"])
    plain_process.run(config, client, counts, plain_process.value_of)


if __name__ == "__main__":
    main(sys.argv[1])
