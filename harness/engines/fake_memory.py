"""What the fake engine has instead of Kafka, Redis and the machine's clock: all of it lies in memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from harness.evidence.checksums import Checksum

VIEW = "view"
FAKE_NOW_MS = 1_750_000_000_000


class Event(NamedTuple):
    """What an engine can know of a record that is an event of a known ad, mostly a view."""

    campaign: str
    time_ms: int
    id: int
    value: bytes = b""  # the record, as it lies in the log
    type: str = VIEW
    ad: str = ""  # the key of its results, where they are by ad


@dataclass
class FakeClock:
    """Time that passes only when it is told to. `steps`: so long after its beginning the machine's clock is set ahead
    by so much, or back."""

    now_ms: int = FAKE_NOW_MS
    steps: tuple[tuple[int, int], ...] = ()

    @property
    def ahead_ms(self) -> int:
        if not self.steps:  # as nearly always; it is asked for all the time
            return 0
        return sum(by_ms for after_ms, by_ms in self.steps if self.now_ms - FAKE_NOW_MS >= after_ms)

    @property
    def wall_ms(self) -> int:
        """What the machine's clock says, by which engines stamp."""
        return self.now_ms + self.ahead_ms


@dataclass
class FakeStore:
    """Redis as far as a sink sees it: hashes of texts."""

    hashes: dict[str, dict[str, str]] = field(default_factory=dict)
    lives_ms: dict[str, int] = field(default_factory=dict)  # of keys that have a time to live
    writes: int = 0  # says whether there is anything new to look at

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
    """So many events, and the sums of their ids."""

    events: int = 0
    sums: Checksum = Checksum()

    def __add__(self, other: object) -> Tally:
        if not isinstance(other, Tally):
            return NotImplemented
        return Tally(self.events + other.events, self.sums + other.sums)


Cell = tuple[str, int]  # campaign id, window start
Counts = dict[Cell, Tally]
Log = list[list[Event | None]]  # a list of records per partition; None is no event
