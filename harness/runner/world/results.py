"""The results of a real run: its store for one reader, and the observer that polls them in another thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from harness.engines.process import ProcessEngine
from harness.judging.questions import keys_of
from harness.model import Change, EngineManifest, Expiring, HarnessError, RunSpec
from harness.results import registry as sources
from harness.results.base import HeldFile, Observer, ResultLocation, ResultStore, patterns_of_keys
from harness.results.change_watch import Changes
from harness.results.redis_scan import OURS as NO_RESULTS
from harness.results.redis_scan import Row
from harness.results.sampler import Sampled
from harness.rundir.store import Store
from harness.runner.world.services import Services
from harness.services import claim
from harness.services.redis import keys_elsewhere
from workloads.base import Columns
from workloads.registry import length_ms_of, results_of

T = TypeVar("T")
OURS, PAGE = "streamgauge:", 1000  # prefix of our own keys in Redis; keys per delete request


class RealResults:
    """See `harness.runner.world.base.Results`."""

    def __init__(
        self, spec: RunSpec, manifest: EngineManifest, services: Services, engine: ProcessEngine, store: Store
    ) -> None:
        self._spec, self._manifest, self._services, self._engine, self._run = spec, manifest, services, engine, store
        self._asked, self._keys = results_of(spec.tape), keys_of(spec)
        self._store: ResultStore | None = None
        self._observer: Observer | None = None
        self._changes: Changes | None = None

    def open(self) -> None:
        self._store = sources.open_results(self._location())

    @property
    def store(self) -> ResultStore:
        if self._store is None:
            raise HarnessError("The results were requested before the services were open.")
        return self._store

    def _location(self) -> ResultLocation:
        spec, asked = self._spec, self._asked
        return ResultLocation(
            client=self._services.client,
            kafka=self._services.kafka,
            topic=self._engine.config.results_topic,
            keys=self._keys,
            tables=asked.tables.kinds,
            window_ms=spec.window_ms,
            length_ms=length_ms_of(spec),
            watermark_ms=spec.watermark_ms,
            manifest=self._manifest,
            config=self._engine.config_path,
            folder=Path(self._engine.config.folder),
            log=self._run.logs / "results.log",
            clock=self._run.clock,
            parts=asked.parts,
            sql=self._services.sql,
            number=asked.number,
        )

    def patterns(self) -> Iterator[str]:
        """Yield patterns of the Redis keys that this run may write, in case it does not end in order."""
        tables = self._asked.tables
        yield from map(claim.literal, (*tables.texts, *tables.sets, *tables.hashes))
        yield from patterns_of_keys(self._keys)
        yield from self.store.patterns()
        for each in self._manifest.sinks:
            yield from each.bookkeeping

    def start_observing(self) -> None:
        results = sources.open_results(self._location())  # a separate one: another thread reads it
        self._observer = results.observer(self._spec.tape)
        if self._observer:
            self._observer.start()
        else:
            self._changes = Changes(results.snapshot, results.close, self._run.clock)
            self._changes.start()

    def stop_observing(self) -> Sampled | None:
        observer, self._observer = self._observer, None
        changes, self._changes = self._changes, None
        if changes:
            changes.stop()
        return observer.stop() if observer else None

    def shows(self, key: int, field: int) -> bool:
        return self._observer is None or self._observer.shows(key, field)

    def changes(self, since: int) -> Columns | None:
        return self._observer.changes(since) if self._observer else None

    def changed(self) -> Change | None:
        watch = self._observer or self._changes
        return watch.changed() if watch else None

    def snapshot(self) -> object:
        return self._ask(self.store.snapshot)

    def rows(self) -> list[Row]:
        return self._ask(self.store.rows)

    def expiring(self) -> Expiring | None:
        others = (*NO_RESULTS, *(pattern for each in self._manifest.sinks for pattern in each.bookkeeping))
        return self._ask(lambda: self.store.expiring(others))

    def _ask(self, ask: Callable[[], T]) -> T:
        services = self._services
        of_service = {"kafka": services.query_kafka, "redis": services.query_redis, "sql": services.query_sql}
        return of_service[self.store.service](ask) if self.store.service else ask()

    def layout(self) -> Sequence[HeldFile]:
        return self._ask(self.store.layout)

    def other_databases(self) -> Mapping[int, int]:
        return self._services.query_redis(lambda: keys_elsewhere(self._services.client))

    def forget(self) -> None:
        """Delete the results, and what the job keeps beside them."""
        keys = sorted({row.key for row in self.rows() if not row.key.startswith(OURS)})
        for start in range(0, len(keys), PAGE):
            self._services.client.delete(*keys[start : start + PAGE])

    def close(self) -> None:
        if self._store:
            self._store.close()
