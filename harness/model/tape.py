"""The tape: what is sent, and when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from harness.model.disorder import Disorder

# An event id has 48 bits: 12 for the server that sends it, and 36 for the index in that server's tape. The last server
# number is reserved for sentinel records (the opening and closing events of a run), and the one after the ordinary
# servers for the probes.
INDEX_BITS = 36
INDEX_MASK = (1 << INDEX_BITS) - 1
MARK_SERVER = 4095
MAX_SERVERS = 4094
AD_IMPRESSIONS = "ad_impressions"  # the workload of older runs, which did not record one
SpellKind = Literal["burst", "silent", "future", "poison", "duplicates", "idle-partition", "skew"]


@dataclass(frozen=True)
class Segment:
    """A part of a profile in which the offered rate changes linearly from one value to another."""

    duration_ms: int
    start_per_s: float
    end_per_s: float


@dataclass(frozen=True)
class Spell:
    """A part of the run in which an input fault changes the input in one way."""

    kind: SpellKind
    from_ms: int  # first due time (idle-partition: of slices) ...
    until_ms: int  # ... and the end, exclusive
    share: float = 0.0  # of the events within it
    ahead_ms: int = 0  # future: the one event at the start is dated this far ahead
    factor: float = 1.0  # burst: factor on the rate of the profile
    servers: int = 0  # silent: this many servers


@dataclass(frozen=True)
class TapeSpec:
    """All settings that decide what is sent. Equal specs make equal tapes, byte for byte, on every machine."""

    seed: int
    profile: tuple[Segment, ...]
    servers: int
    slice_ms: int
    partitions: int
    campaigns: int
    ads_per_campaign: int
    disorder: Disorder
    probes: int = 0  # this many further campaigns get one view each ...
    probe_every_ms: int = 10_000  # ... in this length of time, from one further server
    spells: tuple[Spell, ...] = ()
    checksum: bool = False  # the low 48 bits of an event's user id are the event's id, so that a job can sum it
    warm_up: tuple[Segment, ...] = ()  # offered before the load start, as a tape of its own (generators/schedule.py)
    waits: bool = False  # the warm-up is in Kafka before the engine starts: a backlog
    history_ms: int = 0  # the first part of that backlog, which is in files
    workload: str = AD_IMPRESSIONS  # its id, which decides what the events are
    declaration: str = ""  # the whole declaration of a declared workload, "" for a shipped one

    @property
    def load_ms(self) -> int:
        return sum(segment.duration_ms for segment in self.profile)

    @property
    def warm_up_ms(self) -> int:
        return sum(segment.duration_ms for segment in self.warm_up)

    @property
    def warmed_ms(self) -> int:
        """How long the engine has been working at the load start."""
        return 0 if self.waits else self.warm_up_ms

    @property
    def backlog_ms(self) -> int:
        """The part of the backlog that is only in Kafka."""
        return self.warm_up_ms - self.history_ms if self.waits else 0

    @property
    def history_kept_ms(self) -> int:
        """Kafka also holds the end of the history: retention never begins exactly where the files end."""
        return self.history_ms // 4

    @property
    def all_campaigns(self) -> int:
        """The number of campaigns with those of the probes, which are the last ones.

        An engine can't distinguish them.
        """
        return self.campaigns + self.probes

    @property
    def reach_ms(self) -> int:
        """`Disorder.reach_ms`, plus the silences that faults add."""
        return self.disorder.reach_ms + sum(s.until_ms - s.from_ms for s in self.spells if s.kind == "silent")

    @property
    def senders(self) -> int:
        """The number of servers. If there are probes, the last server sends them."""
        return self.servers + (1 if self.probes else 0)
