"""Kafka and Redis of a real run, as a run and its faults see them."""

from __future__ import annotations

from pathlib import Path

from harness.engines import complaint
from harness.engines.process import ProcessEngine
from harness.faults.base import Fault
from harness.faults.run_at_poll import Field
from harness.judging.questions import keys_of
from harness.load.fleet import Load
from harness.model import RunSpec
from harness.results.table_commits import LOGS
from harness.runner.world import tables
from harness.runner.world.base import ServiceGone, Spoiled
from harness.runner.world.log import RealLog
from harness.runner.world.results import RealResults
from harness.runner.world.server_refusals import Refusals
from harness.runner.world.services import Services
from harness.services.small_disk import SmallDisk
from workloads.registry import results_of


class RealServers:
    """See `harness.runner.world.base.Servers`."""

    def __init__(
        self,
        spec: RunSpec,
        services: Services,
        *,
        fault: Fault,
        engine: ProcessEngine,
        results: RealResults,
        log: RealLog,
        load: Load,
    ) -> None:
        self._spec, self._services, self._fault, self._engine = spec, services, fault, engine
        self._results, self._log, self._load = results, log, load
        self._keys, self._tables = keys_of(spec), results_of(spec.tape).tables
        self.disk: SmallDisk | None = None  # of the checkpoint, if a fault fills it

    @property
    def _table(self) -> Path | None:
        manifest = self._engine.manifest
        return Path(self._engine.config.folder) / manifest.table if manifest.source in LOGS else None

    @property
    def field(self) -> Field | None:
        """None before the services are open."""
        services = self._services
        for link in services.links.values():
            link.check()
        if not services.are_open:
            return None
        return Field(
            services.embedded_kafka,
            services.embedded_redis,
            services.kafka,
            self._engine.config.topic,
            services.client,
            self._keys,
            lambda client: tables.write_to_redis(client, self._tables),
            services.links,
            self._log.kept if services.embedded_kafka else None,
            disk=self.disk,
            postgresql=services.embedded_postgres,
            table=self._table,
        )

    def reachable(self) -> bool:
        return self._fault.settled() or self._services.reachable()

    def gone(self) -> str:
        seen, services = [], self._services
        results = (self._results.snapshot,) if self._results.store.service else ()
        for look in (lambda: services.query_redis(services.client.ping), self._log.ends, *results):
            try:
                look()
            except ServiceGone as gone:
                seen.append(str(gone))
        return "; ".join(dict.fromkeys(seen))

    def refused(self) -> str:
        words = "\n".join([*self._engine.last_words().lines, *self._engine.tail(complaint.REMEMBERED)])
        if not (refusals := self._services.refusals):
            return ""
        return "; ".join(filter(None, (self._throttled(refusals), refusals.of_failed(words))))

    def spoiled(self) -> Spoiled:
        if not (refusals := self._services.refusals):
            return Spoiled()
        return Spoiled(refusals.evicted(), refusals.cut(), self._throttled(refusals))

    def _throttled(self, refusals: Refusals) -> str:
        return refusals.throttled(self._load.throttled_ms(), self._spec.lag_budget_ms)
