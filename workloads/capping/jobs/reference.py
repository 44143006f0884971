"""The reference job of capping: one plain process that holds each request until the watermark has passed it.

    python reference.py CONFIG.json

The watermark is the newest time among all requests minus the allowed lateness, when everything that was in the log a
moment ago was read. A request that is not after the newest one that its user was answered before this poll of the log
is late: it is dropped, and named in late.jsonl. Each output names its record, so that after a crash the output topic
shows what was emitted; the state of each user is made again from these records.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import msgspec

from workloads.capping.jobs.capped import Cap, User, read_caps
from workloads.jobs.late_names import add_names, late_path
from workloads.jobs.redis_results import connect
from workloads.jobs.run_config import Config
from workloads.jobs.waiting_process import Place, run


class Request(msgspec.Struct):
    """The fields of an event that the question needs. A record without them is unusable."""

    user: str
    asked_at: int


decode_request = msgspec.json.Decoder(Request).decode


class Requests:
    """The requests that were read, and those that are not answered yet."""

    def __init__(self, out: set[Place], caps: Mapping[str, Cap], watermark_ms: int, late: Path) -> None:
        self._out, self._caps, self._allowed_ms, self._late = out, caps, watermark_ms, late
        self._late.touch()
        self._users: dict[str, User] = {}
        self._answered_ms: dict[str, int] = {}  # the newest time of an answer
        self._read: list[tuple[Place, int, Request]] = []  # since the last answers, with the number of the event
        self._held: dict[tuple[str, int], list[Place]] = {}  # records of waiting requests, by user and number
        self._newest_ms = 0
        self.unusable = 0

    def add(self, place: Place, key: bytes | None, value: bytes | None) -> None:
        try:
            request, event = decode_request(value or b""), int(key or b"", 16)
            _ = self._caps[request.user]
        except (msgspec.DecodeError, UnicodeDecodeError, ValueError, KeyError):
            self.unusable += 1
            return
        self._read.append((place, event, request))
        self._newest_ms = max(self._newest_ms, request.asked_at)

    def answered(self, *, idle: bool) -> list[bytes]:  # noqa: ARG002  (a pause of the load moves no watermark)
        """Return the outputs that are due, in order of event time for each user."""
        self._accept()
        outputs = []
        for name, user in self._users.items():
            # Its timers fire up to its last request that is due. So a request behind that can't be too late for one.
            due = [at_ms for at_ms, _ in user.waiting if at_ms <= self._newest_ms - self._allowed_ms]
            if not due:
                continue
            self._answered_ms[name] = max(due)
            for event, action, shown in user.fire(max(due)):
                place = self._taken(name, event)
                if place in self._out:
                    self._out.remove(place)
                    continue
                output = {"campaign": name, "window": event, "output": {"action": action, "shown": shown}, "of": place}
                outputs.append(json.dumps(output).encode())
        return outputs

    def done(self, read: Mapping[int, int]) -> dict[int, int]:
        """Return the offsets that were read: a waiting request is in the state, and its timer is set."""
        return dict(read)

    def _accept(self) -> None:
        """Let the requests that were read wait, and drop those that are late."""
        for place, _, request in self._read:
            if place in self._out:
                newest_ms = max(self._answered_ms.get(request.user, 0), request.asked_at)
                self._answered_ms[request.user] = newest_ms
        late = []
        for place, event, request in self._read:
            if place not in self._out and request.asked_at <= self._answered_ms.get(request.user, -1):
                late.append(place)
                continue
            self._users.setdefault(request.user, User(self._caps[request.user])).ask(request.asked_at, event)
            self._held.setdefault((request.user, event), []).append(place)
        self._read.clear()
        add_names(self._late, late)

    def _taken(self, user: str, event: int) -> Place:
        places = self._held[user, event]
        place = places.pop(0)
        if not places:
            del self._held[user, event]
        return place


def made(out: set[Place], config: Config) -> Requests:
    caps = read_caps(cast(dict[str, str], connect(config).hgetall("rules")))
    return Requests(out, caps, config["watermark_ms"], late_path(config))


if __name__ == "__main__":
    run(sys.argv[1], made)
