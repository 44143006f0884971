"""The fake engine's substitutes for Kafka, Redis and the machine's clock, all in memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from harness.evidence.checksums import Checksum

VIEW = "view"
FAKE_NOW_MS = 1_750_000_000_000


class Event(NamedTuple):
    """The fields of a record that is an event of a known ad, mostly a view."""

    campaign: str
    time_ms: int
    id: int
    value: bytes = b""  # the record in the log
    type: str = VIEW
    ad: str = ""  # the key of its results if they are per ad


@dataclass
class FakeClock:
    """Simulated time. Each of `steps` is (time after the beginning, step of the machine's clock)."""

    now_ms: int = FAKE_NOW_MS
    steps: tuple[tuple[int, int], ...] = ()

    @property
    def ahead_ms(self) -> int:
        if not self.steps:  # the usual case, on a hot path
            return 0
        return sum(by_ms for after_ms, by_ms in self.steps if self.now_ms - FAKE_NOW_MS >= after_ms)

    @property
    def wall_ms(self) -> int:
        """Return the machine's clock, which engines use for timestamps."""
        return self.now_ms + self.ahead_ms


@dataclass
class FakeStore:
    """Redis as seen by a sink: hashes of texts."""

    hashes: dict[str, dict[str, str]] = field(default_factory=dict)
    lives_ms: dict[str, int] = field(default_factory=dict)  # time to live by key
    writes: int = 0  # lets a poll skip unchanged results

    def set(self, key: str, name: str, value: str) -> None:
        self.hashes.setdefault(key, {})[name] = value
        self.writes += 1

    def delete(self, key: str, name: str) -> None:
        fields = self.hashes[key]
        del fields[name]
        if not fields:
            del self.hashes[key]
        self.writes += 1

    def get(self, key: str, name: str) -> str | None:
        return self.hashes.get(key, {}).get(name)


class Tally(NamedTuple):
    """A number of events, and the sums of their ids."""

    events: int = 0
    sums: Checksum = Checksum()

    def __add__(self, other: object) -> Tally:
        if not isinstance(other, Tally):
            return NotImplemented
        return Tally(self.events + other.events, self.sums + other.sums)


Cell = tuple[str, int]  # key, window start
Counts = dict[Cell, Tally]
Log = list[list[Event | None]]  # a list of records per partition; None: not an event
