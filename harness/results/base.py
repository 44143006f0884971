"""The interface of a source of results: it returns all results, as rows of our own schema.

Sources do the translation, so that judging and measuring know one schema only. An entry that can't be translated keeps
its own name, and the checks report it: nothing is skipped silently.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

from harness.engines.template import OPENS, WINDOW, WINDOW_KEYS
from harness.evidence.checksums import PREFIX
from harness.model import Change, EngineManifest, Expiring, KafkaAddress, SqlAddress, TapeSpec
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
from harness.results.sampler import PlainObserver, Polled, Sampled
from harness.services.claim import literal
from harness.util.clock import Clock
from harness.util.integers import parse_int64
from workloads.base import Columns

UPDATED = "updated:"
# Kinds of rows that are no type of a key. The type of a key that vanished while it was read is unknown too.
TRANSLATED = (HASH, VANISHED, NO_RESULT, ELSEWHERE, ORPHAN)


@dataclass(frozen=True)
class ResultLocation:
    """The location of one run's results, and how to interpret them."""

    client: Any  # a Redis client
    kafka: KafkaAddress
    topic: str  # the results topic, for engines that write to Kafka
    keys: Sequence[str]
    tables: Mapping[str, str]  # keys of the workload's tables, which are ours -> type
    window_ms: int
    length_ms: int | None  # of each window; windows may overlap; None: they have no common length
    watermark_ms: int
    manifest: EngineManifest
    config: Path  # the engine's run config
    log: Path  # for a reader's error output
    clock: Clock
    parts: Sequence[Mapping[str, str]] = ()  # the names that each of `keys` is made of
    folder: Path = Path()  # of the engine, for tables of files
    sql: SqlAddress | None = None  # the run's schema in PostgreSQL, for engines that write to it
    number: str = OPENS  # the meaning of a cell's whole number; "" if cells have none


class HeldFile(NamedTuple):
    """A file of the current version of a table."""

    partition: str  # the names of its folders, such as "day=2026-11-27"
    bytes: int
    rows: int


class Observer(Protocol):
    """A thread that polls the results from `start` until `stop`."""

    def start(self) -> None: ...
    def stop(self) -> Sampled: ...
    def shows(self, key: int, field: int) -> bool:
        """Return True if this cell was seen in any form, or is not polled."""

    def changed(self) -> Change | None:
        """Return when the results last changed."""

    def changes(self, since: int) -> Columns:
        """Return the changes from this one on, as columns of samples.parquet."""


class ResultStore(ABC):
    """The results of a run in one kind of store: prepared, polled during the run, and read at the end."""

    form: ClassVar[str]  # as a manifest writes it under `results`
    looks_for: ClassVar[str]  # in words: what a job must write
    service: ClassVar[Literal["redis", "kafka", "sql", ""]] = ""  # which service must answer before it can be read
    prints: ClassVar[str] = ""  # the beginning of a sentence that quotes an entry, if an entry is no key
    when_empty: ClassVar[str] = "there are no results"

    def __init__(self, location: ResultLocation) -> None:
        self._location = location

    @abstractmethod
    def rows(self) -> list[Row]:
        """Read everything, orphans included."""

    def prepare(self) -> None:  # noqa: B027  (most targets exist)
        """Create the target that the engine will write to."""

    def patterns(self) -> Iterator[str]:
        """Yield shell patterns of Redis keys that results may have beside those that the workload names."""
        yield from ()

    def snapshot(self) -> object:
        """Return a value that the drain compares with the poll before: all rows, if there is no cheaper value."""
        return self.rows()

    def observer(self, tape: TapeSpec) -> Observer | None:
        """Return an observer that polls from another thread and owns this instance; None if that is too slow."""
        del tape
        return None

    def expiring(self, others: tuple[str, ...]) -> Expiring | None:
        """Return the results that have a time to live, except the keys that match `others`."""
        del others
        return None

    def layout(self) -> Sequence[HeldFile]:
        """Return the files that hold the results; nothing if they are in no table of files."""
        return ()

    def close(self) -> None:  # noqa: B027  (most have nothing open)
        """Close what is open."""


class Version(NamedTuple):
    """The rows that a reader could get. With a time, they are a version in the store's own history."""

    rows: list[Row]
    at_us: int | None = None
    name: str = ""
    writer: str = ""  # as far as the store says which program wrote it


class PolledStore(ResultStore):
    """A store whose rows are polled during a run."""

    def versions(self) -> Iterator[Version]:
        """Yield what readers could get since the call before, as far as the store knows; the present rows come last."""
        yield Version(self.rows())

    def observer(self, tape: TapeSpec) -> Observer | None:
        location = self._location
        known, bookkeeping = frozenset(location.keys), self.bookkeeping

        seen: list[Row] = []
        replies: tuple[Sequence[object], Collection[str]] = (), ()

        def poll(names: Sequence[str]) -> Iterator[Polled]:
            nonlocal seen, replies
            for each in self.versions():
                if each.rows is not seen:  # a table of many rows returns those that it has until there is a new version
                    rows = [row for row in each.rows if self.is_there(row)]
                    hashes = (row.key for row in rows if row.kind in (HASH, ORPHAN))
                    seen, replies = each.rows, (by_key(rows, names), strangers(hashes, known, bookkeeping))
                yield Polled(*replies, each.at_us, each.name, each.writer)

        return PlainObserver(poll, self.close, location.keys, tape, location.clock)

    @property
    def bookkeeping(self) -> Sequence[str]:
        """Return patterns of keys that the engine's sinks keep for themselves."""
        return [pattern for claim in self._location.manifest.sinks for pattern in claim.bookkeeping]

    def is_there(self, row: Row) -> bool:
        """Return False for a row that the engine has begun and not yet written: a poll is not atomic."""
        del row
        return True


class RedisStore(PolledStore):
    """A store in the run's Redis, with keys of some schema."""

    service = "redis"

    def expiring(self, others: tuple[str, ...]) -> Expiring | None:
        return expiring(self._location.client, others)


def patterns_of_keys(keys: Iterable[str]) -> Iterator[str]:
    """Yield patterns of the Redis keys that the results of any workload may have."""
    for key in keys:
        yield from (literal(key), literal(f"{UPDATED}{key}"), literal(f"{PREFIX}{key}"))


def window_start(text: str, location: ResultLocation, named: str = WINDOW) -> str:
    """Convert a window's name to its start.

    A job may name a window by its end, under a field name that shows this, or as declared in its manifest. Text that is
    no number stays unchanged.
    """
    number, by = parse_int64(text), WINDOW_KEYS.get(named, location.manifest.window_key)
    return text if by == "start" or number is None or location.length_ms is None else str(number - location.length_ms)


def by_key(rows: Sequence[Row], keys: Sequence[str]) -> list[list[str] | str]:
    """Return one reply per key, as Redis returns a hash: field, value, ...; an error if its key is no hash."""
    found: Mapping[str, list[str]] = {name: [] for name in keys}
    wrong = {row.key for row in rows if row.key in found and row.kind not in TRANSLATED}
    for row in rows:
        if row.key in found and row.kind == HASH:
            found[row.key].extend((row.field, row.value))
    return [WRONG_TYPE if name in wrong else found[name] for name in keys]
