"""A fault's view of the run at each poll, and the services that it can harm."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from redis import Redis

from harness.engines.base import Engine
from harness.model import Change, KafkaAddress, Progress
from harness.services.kafka import EmbeddedKafka
from harness.services.link import Link
from harness.services.postgresql import EmbeddedPostgres
from harness.services.redis import EmbeddedRedis
from harness.services.small_disk import SmallDisk


class Log(Protocol):
    """The topic of a run, for faults that add or remove records. All such records become evidence."""

    def keep(
        self,
        below: Mapping[int, int],
        done: Mapping[int, int],
        *,
        since: Mapping[int, int] | None = None,
        anew: bool = False,
    ) -> int:
        """Read and keep the records below those offsets (`since`: from these on) before they are removed; return how
        many of them the engine had not processed. `anew`: the topic is recreated, and offsets begin again."""

    def send(self, partitions: Sequence[int], each: int = 1) -> None:
        """Send so many sentinel records to each partition; they count like all others."""

    def begin(self, records: int) -> Callable[[], None]:
        """Send so many events in a transaction that stays open, and wait until Kafka confirms them. Return a function
        that aborts it."""

    def signal_fleet(self, number: signal.Signals) -> None:
        """Send a signal to the ad servers, which can be paused for a moment."""


@dataclass(frozen=True)
class Field:
    """The services of a run, for faults. None marks a service that is not ours to harm."""

    kafka: EmbeddedKafka | None
    redis: EmbeddedRedis | None
    kafka_address: KafkaAddress
    topic: str
    results: Redis  # the harness's own connection
    keys: Sequence[str]  # those that may hold results
    put_back: Callable[[Redis], None]  # restores our data that a job reads into an emptied Redis; no results
    links: Mapping[str, Link] = field(default_factory=dict)  # by service: the connections through a proxy
    log: Log | None = None
    disk: SmallDisk | None = None  # the checkpoint's separate disk, if any
    postgresql: EmbeddedPostgres | None = None  # for results in `sql`
    table: Path | None = None  # the folder of results in `delta`, `iceberg` or `parquet`


@dataclass(frozen=True)
class Moment:
    """The state of the run at one poll. `epoch_ms` is 0 before the load started, i.e. until the warm-up is over."""

    now_ms: int
    epoch_ms: int
    engine: Engine
    progress: Progress | None
    total: int  # planned records
    field: Field | None = None  # None: a world without services
    before: int = 0  # planned records of the warm-up, which precede the others
    changed: Change | None = None  # the newest change of the results; None: none was seen


def done(moment: Moment) -> int:
    """Return the number of processed records; a run's topics are new, so offsets count from 0."""
    return sum(moment.progress.offsets.values()) if moment.progress else 0
