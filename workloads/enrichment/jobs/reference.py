"""The reference job of enrichment: one plain process that holds each order until the watermark has passed it.

    python reference.py CONFIG.json

An order is answered when everything that was in the log a moment ago was read, and the newest time in it minus the
allowed lateness has reached the order's own time; or when no record has come for a second. Each output names its
record, so that after a crash the output topic shows what was emitted: this makes the job exactly once without any other
state.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Mapping
from heapq import heappop, heappush

import msgspec

from workloads.enrichment.jobs.enriched import Windows
from workloads.jobs.run_config import Config
from workloads.jobs.waiting_process import Place, run


class Order(msgspec.Struct):
    """The fields of an event that the question needs. A record without them is unusable."""

    user: str
    ordered_at: int


decode_order = msgspec.json.Decoder(Order).decode


class Orders:
    """The orders that were read, and those that are not emitted yet."""

    def __init__(self, out: set[Place], watermark_ms: int) -> None:
        self._out, self._allowed_ms = out, watermark_ms
        self._windows: dict[str, Windows] = defaultdict(Windows)
        self._held: list[tuple[int, Place, int, str]] = []  # time, place, number of the event, user
        self._newest_ms = 0
        self.unusable = 0

    def add(self, place: Place, key: bytes | None, value: bytes | None) -> None:
        try:
            order, event = decode_order(value or b""), int(key or b"", 16)
        except (msgspec.DecodeError, UnicodeDecodeError, ValueError):
            self.unusable += 1
            return
        self._windows[order.user].add(order.ordered_at)
        self._newest_ms = max(self._newest_ms, order.ordered_at)
        if place in self._out:
            self._out.remove(place)
        else:
            heappush(self._held, (order.ordered_at, place, event, order.user))

    def answered(self, *, idle: bool) -> list[bytes]:
        """Return the outputs that are due, in order of event time."""
        until_ms = self._newest_ms if idle else self._newest_ms - self._allowed_ms
        outputs = []
        while self._held and self._held[0][0] <= until_ms:
            time_ms, place, event, user = heappop(self._held)
            answer = self._windows[user].answer(time_ms)
            output = {"campaign": user, "window": event, "output": {"orders": answer}, "of": place}
            outputs.append(json.dumps(output).encode())
        return outputs

    def done(self, read: Mapping[int, int]) -> dict[int, int]:
        """Return the offset up to which each partition was emitted, given the offsets that were read."""
        done = dict(read)
        for _, (partition, offset), *_ in self._held:
            done[partition] = min(done[partition], offset)
        return done


def made(out: set[Place], config: Config) -> Orders:
    return Orders(out, config["watermark_ms"])


if __name__ == "__main__":
    run(sys.argv[1], made)
