"""The seam: a source of results gives all that there is, as the rows of our own schema.

Translating happens here and nowhere else, so that judging and measuring know one schema only. What can't be translated
keeps its own name, and the checks name it: nothing is passed over in silence.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol

from harness.engines.template import OPENS, WINDOW, WINDOW_KEYS
from harness.evidence.checksums import PREFIX
from harness.model import Change, EngineManifest, Expiring, KafkaAddress, TapeSpec
from harness.results.redis_scan import (
    ELSEWHERE,
    HASH,
    NO_RESULT,
    ORPHAN,
    VANISHED,
    WRONG_TYPE,
    Row,
    expiring,
    strangers,
)
from harness.results.sampler import PlainObserver, Sampled
from harness.services.claim import literal
from harness.util.clock import Clock
from harness.util.integers import whole

UPDATED = "updated:"
# Kinds of rows that are no type of a key: one that vanished while it was read says nothing of its type either.
TRANSLATED = (HASH, VANISHED, NO_RESULT, ELSEWHERE, ORPHAN)


@dataclass(frozen=True)
class Place:
    """Where the results of one run are."""

    client: Any  # of Redis
    kafka: KafkaAddress
    topic: str  # of results, for engines that write them to Kafka
    campaigns: Sequence[str]
    tables: Mapping[str, str]  # keys of the workload's tables, which are ours -> kind
    window_ms: int
    length_ms: int | None  # of each window, which may begin within another one; None: they have no common one
    watermark_ms: int
    manifest: EngineManifest
    config: Path  # the engine's orders
    log: Path  # for what a reader complains of
    clock: Clock  # of the run
    parts: Sequence[Mapping[str, str]] = ()  # what each of `campaigns` is made of, by names
    number: str = OPENS  # what the whole number of a cell is; "" where it has none


class Observer(Protocol):
    """Looks at the results from `start` until `stop`."""

    def start(self) -> None: ...
    def stop(self) -> Sampled: ...
    def shows(self, key: int, field: int) -> bool:
        """Whether anything of this cell was seen; true of one at which nobody looks."""

    def changed(self) -> Change | None:
        """When the results changed last."""


class ResultStore(ABC):
    """Where the results of a run are: made ready, polled while it goes on, and read in the end."""

    form: ClassVar[str]  # as a manifest writes it under `results`
    looks_for: ClassVar[str]  # what a job has to write, in words
    service: ClassVar[Literal["redis", "kafka", ""]] = ""  # which of ours has to answer, so that it can be read
    prints: ClassVar[str] = ""  # how a sentence begins that shows a part of it, where that is no key
    when_empty: ClassVar[str] = "there are no results"

    def __init__(self, place: Place) -> None:
        self._place = place

    @abstractmethod
    def rows(self) -> list[Row]:
        """Everything, orphans included."""

    def prepare(self) -> None:  # noqa: B027  (most are there)
        """Make what the engine will write into."""

    def patterns(self) -> Iterator[str]:
        """Keys of Redis that results may have beside those that the workload names, as patterns of a shell."""
        yield from ()

    def snapshot(self) -> object:
        """What a drain compares with the look before; all of it, where there is no cheaper way."""
        return self.rows()

    def observer(self, tape: TapeSpec) -> Observer | None:
        """Poll it from another thread, for which this instance is its own; None where that is too dear."""
        del tape
        return None

    def expiring(self, others: tuple[str, ...]) -> Expiring | None:
        """Results that have a time to live, beside the keys that match `others`."""
        del others
        return None

    def close(self) -> None:  # noqa: B027  (most have nothing open)
        """Let go of what is open."""


class PolledStore(ResultStore):
    """One whose rows are read again and again while a run goes on."""

    def observer(self, tape: TapeSpec) -> Observer | None:
        place = self._place
        known = frozenset(place.campaigns)
        bookkeeping = [pattern for claim in place.manifest.sinks for pattern in claim.bookkeeping]

        def look(names: Sequence[str]) -> tuple[Sequence[object], Collection[str]]:
            rows = [row for row in self.rows() if self.is_there(row)]
            hashes = (row.key for row in rows if row.kind in (HASH, ORPHAN))
            return by_campaign(rows, names), strangers(hashes, known, bookkeeping)

        return PlainObserver(look, self.close, place.campaigns, tape, place.clock)

    def is_there(self, row: Row) -> bool:
        """Nothing is read in one moment: what is begun and not written yet is no row."""
        del row
        return True


class RedisStore(PolledStore):
    """In the run's Redis, under keys of some schema."""

    service = "redis"

    def expiring(self, others: tuple[str, ...]) -> Expiring | None:
        return expiring(self._place.client, others)


def keys_of_campaigns(campaigns: Iterable[str]) -> Iterator[str]:
    """Patterns of the keys that any workload's results may have in Redis."""
    for key in campaigns:
        yield from (literal(key), literal(f"{UPDATED}{key}"), literal(f"{PREFIX}{key}"))


def window_start(text: str, place: Place, named: str = WINDOW) -> str:
    """A job may name a window by its end, under a name that says so or as its manifest says. What is no number stays
    what it is."""
    number, by = whole(text), WINDOW_KEYS.get(named, place.manifest.window_key)
    return text if by == "start" or number is None or place.length_ms is None else str(number - place.length_ms)


def by_campaign(rows: Sequence[Row], campaigns: Sequence[str]) -> list[list[str] | str]:
    """As a hash of Redis for each campaign: field, value, field, value, ...; as an error where its key is no hash."""
    found: Mapping[str, list[str]] = {name: [] for name in campaigns}
    wrong = {row.key for row in rows if row.key in found and row.kind not in TRANSLATED}
    for row in rows:
        if row.key in found and row.kind == HASH:
            found[row.key].extend((row.field, row.value))
    return [WRONG_TYPE if name in wrong else found[name] for name in campaigns]
