"""What a fault gets to see and to touch, whenever it is polled."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from redis import Redis

from harness.engines.base import Engine
from harness.model import Change, KafkaAddress, Progress
from harness.services.kafka import EmbeddedKafka
from harness.services.link import Link
from harness.services.redis import EmbeddedRedis
from harness.services.small_disk import SmallDisk


class Log(Protocol):
    """The topic of a run, for faults that put something into it or take something out: all of that is evidence."""

    def keep(
        self,
        below: Mapping[int, int],
        done: Mapping[int, int],
        *,
        since: Mapping[int, int] | None = None,
        anew: bool = False,
    ) -> int:
        """Read and keep the records below those offsets (`since`: from these on), which are to be removed; how many of
        them the engine had not done. `anew`: the topic goes with them, and offsets begin again."""

    def send(self, partitions: Sequence[int], each: int = 1) -> None:
        """So many events of ours into each of those partitions, which count like all others."""

    def begin(self, records: int) -> Callable[[], None]:
        """So many events of ours, confirmed by Kafka, in a transaction that is left open. What it returns aborts it."""

    def signal_fleet(self, number: signal.Signals) -> None:
        """To the ad servers: they can be held for a moment."""


@dataclass(frozen=True)
class Field:
    """The services of a run, for those who do them harm. What is not ours to harm is None."""

    kafka: EmbeddedKafka | None
    redis: EmbeddedRedis | None
    kafka_address: KafkaAddress
    topic: str
    results: Redis  # the harness's own connection
    campaigns: Sequence[str]  # the keys under which results may lie
    put_back: Callable[[Redis], None]  # writes into an emptied Redis what a job reads there, which is ours; no result
    links: Mapping[str, Link] = field(default_factory=dict)  # "kafka", "redis": the roads that lead through a proxy
    log: Log | None = None
    disk: SmallDisk | None = None  # the one on which the checkpoint lies, if it has one of its own


@dataclass(frozen=True)
class Moment:
    """What one look at the run shows. `epoch_ms` is 0 before the load began, which is when a warm-up is over."""

    now_ms: int
    epoch_ms: int
    engine: Engine
    progress: Progress | None
    total: int  # planned records
    field: Field | None = None  # None: a world without services
    before: int = 0  # so many of the planned records are of a warm-up, and come before the others
    changed: Change | None = None  # the newest of the results; None: nobody saw one


def done(moment: Moment) -> int:
    """Records below the offsets; topics of a run are fresh, so that offsets count from 0."""
    return sum(moment.progress.offsets.values()) if moment.progress else 0
