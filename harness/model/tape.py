"""What is sent, and when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from harness.model.disorder import Disorder

AD_IMPRESSIONS = "ad_impressions"  # the workload of every run of old, which did not say
SpellKind = Literal["burst", "silent", "future", "poison", "duplicates", "idle-partition", "skew"]


@dataclass(frozen=True)
class Segment:
    """A stretch of a profile: the offered rate goes in a straight line from one value to another."""

    duration_ms: int
    start_per_s: float
    end_per_s: float


@dataclass(frozen=True)
class Spell:
    """A stretch of the run in which the input is different in one way: what input faults make of a tape."""

    kind: SpellKind
    from_ms: int  # of due times (idle-partition: of slices), from the first one ...
    until_ms: int  # ... to before this one
    share: float = 0.0  # of the events within it
    ahead_ms: int = 0  # future: the one event at its beginning is dated so far ahead
    factor: float = 1.0  # burst: so many times the rate of the profile
    servers: int = 0  # silent: so many of them


@dataclass(frozen=True)
class TapeSpec:
    """All that decides what is sent; equal specs make equal tapes, byte for byte, on every machine."""

    seed: int
    profile: tuple[Segment, ...]
    servers: int
    slice_ms: int
    partitions: int
    campaigns: int
    ads_per_campaign: int
    disorder: Disorder
    probes: int = 0  # so many further campaigns get one view each ...
    probe_every_ms: int = 10_000  # ... in this length of time, from one further server
    spells: tuple[Spell, ...] = ()
    checksum: bool = False  # the low 48 bits of an event's user id are the event's id, so that a job can sum it
    warm_up: tuple[Segment, ...] = ()  # what is offered before the epoch, as a tape of its own (generators/schedule.py)
    waits: bool = False  # ... and lies there when the engine starts: a backlog in Kafka, ...
    history_ms: int = 0  # ... of which the first so long lies in files
    workload: str = AD_IMPRESSIONS  # its id, which decides what the events are
    declaration: str = ""  # of a declared workload the whole of what it declares, "" of a shipped one

    @property
    def load_ms(self) -> int:
        return sum(segment.duration_ms for segment in self.profile)

    @property
    def warm_up_ms(self) -> int:
        return sum(segment.duration_ms for segment in self.warm_up)

    @property
    def warmed_ms(self) -> int:
        """How long the engine is at work when the load begins."""
        return 0 if self.waits else self.warm_up_ms

    @property
    def backlog_ms(self) -> int:
        """Of what waits, so long lies in Kafka alone."""
        return self.warm_up_ms - self.history_ms if self.waits else 0

    @property
    def history_kept_ms(self) -> int:
        """Of the history Kafka has its end too: nobody's retention begins where the files end."""
        return self.history_ms // 4

    @property
    def all_campaigns(self) -> int:
        """To an engine a probe campaign is one like any other: the last ones of the population."""
        return self.campaigns + self.probes

    @property
    def reach_ms(self) -> int:
        """As `Disorder.reach_ms`, with the silences that faults add."""
        return self.disorder.reach_ms + sum(s.until_ms - s.from_ms for s in self.spells if s.kind == "silent")

    @property
    def senders(self) -> int:
        """All servers; the last one sends the probes, where there are any."""
        return self.servers + (1 if self.probes else 0)
