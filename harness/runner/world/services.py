"""Kafka, Redis and PostgreSQL of one run, embedded or external, and the proxies that its faults need."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import redis

from harness.config import server_needs
from harness.engines import yahoo_conf
from harness.engines.warm import Starts
from harness.faults import registry
from harness.install import jvm
from harness.install.archives import BEING_MADE
from harness.model import (
    EngineManifest,
    HarnessError,
    KafkaAddress,
    RedisAddress,
    RunSpec,
    SqlAddress,
    UsageError,
    redacted,
)
from harness.runner.world.server_refusals import Refusals
from harness.runner.world.serving import Serving
from harness.services import kafka_security, postgresql
from harness.services.children import Child
from harness.services.embedded import Embedded
from harness.services.kafka import EmbeddedKafka
from harness.services.kafka_cluster import EmbeddedCluster
from harness.services.link import Link
from harness.services.postgresql import EmbeddedPostgres
from harness.services.redis import EmbeddedRedis, connect, external

T = TypeVar("T")
HURRIED_S = 0.5
ARCHIVE_DEADLINE_S = 60.0  # a broker writes its archive on a clean exit


class Services:
    """The services of a run. `settled` returns whether no active fault blocks them."""

    def __init__(
        self,
        spec: RunSpec,
        manifest: EngineManifest,
        logs: Path,
        starts: Starts,
        settled: Callable[[], bool],
        *,
        schema: str,
    ) -> None:
        self._spec, self._manifest, self._logs, self._starts, self._settled = spec, manifest, logs, starts, settled
        self._schema = schema
        self.embedded_kafka: EmbeddedKafka | None = None
        self.embedded_redis: EmbeddedRedis | None = None
        self.embedded_postgres: EmbeddedPostgres | None = None
        self.links: dict[str, Link] = {}
        self.refusals: Refusals | None = None
        self._kafka: KafkaAddress | None = None
        self._client: redis.Redis | None = None
        self._sql: SqlAddress | None = None
        self._kafka_serves = Serving("Kafka", lambda: self.kafka.bootstrap, lambda: _child_of(self.embedded_kafka))
        self._redis_serves = Serving("Redis", self._place_of_redis, lambda: _child_of(self.embedded_redis))

        self._sql_serves = Serving("PostgreSQL", self._place_of_sql, lambda: _child_of(self.embedded_postgres))

    @property
    def sql(self) -> SqlAddress | None:
        """Return the run's schema in PostgreSQL; None if the engine writes elsewhere."""
        return self._sql

    @property
    def are_open(self) -> bool:
        return self._client is not None

    @property
    def kafka(self) -> KafkaAddress:
        if self._kafka is None:
            raise HarnessError("Kafka was requested before it was open.")
        return self._kafka

    @property
    def client(self) -> redis.Redis:
        if self._client is None:
            raise HarnessError("Redis was requested before it was open.")
        return self._client

    def start_proxies(self) -> None:
        """Start a proxy before each embedded service for which a planned fault needs one."""
        of_others = {"kafka": self._spec.kafka, "redis": self._spec.redis, "postgresql": self._spec.sql}
        for name in registry.links(self._spec.fault):
            if not of_others[name]:
                self.links[name] = link = Link(name, self._logs)
                link.start()

    def open(self) -> Mapping[str, Any]:
        """Open the services and return their part of an engine's config."""
        if self._manifest.source == "sql":
            self._sql = self._open_postgres()  # first: one that is refused should cost no time
        self._kafka = kafka = self._open_kafka()
        address = self._open_redis()
        self._client = connect(address)
        return self._as_engine_sees(kafka, address)

    def watch_refusals(self, topic: str) -> None:
        """Compare the counters of external servers with those of now."""
        spec, kafka = self._spec, self.kafka
        self.refusals = Refusals(
            kafka if kafka.external else None,
            self.client if spec.redis else None,
            redacted(spec.redis),
            topic,
            server_needs.wanted(spec, self._manifest),
        )

    def _open_kafka(self) -> KafkaAddress:
        if self._spec.kafka:
            file = Path(self._spec.kafka_config) if self._spec.kafka_config else None
            return kafka_security.external(self._spec.kafka, file)
        link = self.links.get("kafka")
        jars, java, starts = jvm.jars("services"), str(jvm.java()), self._starts.broker
        if registry.brokers(self._spec) > 1:
            if link:
                raise UsageError(
                    "A plan can put a proxy before Kafka or start three brokers, but not both. Use two runs."
                )
            self.embedded_kafka = EmbeddedCluster(self._logs, jars, java, jvm_options=starts.options)
        else:
            at = link.address if link else ""
            self.embedded_kafka = EmbeddedKafka(
                self._logs,
                jars,
                java,
                engine_at=at,
                jvm_options=starts.options,
                stop_deadline_s=ARCHIVE_DEADLINE_S if starts.state == BEING_MADE else 0.0,
            )
        address = self.embedded_kafka.start()
        if link:
            link.lead_to(self.embedded_kafka.behind_proxy)
        return address

    def _open_redis(self) -> RedisAddress:
        if self._spec.redis:
            address = external(self._spec.redis, self._spec.redis_prefix)
        else:
            port = yahoo_conf.REDIS_PORT if self._manifest.orders == "yahoo" else 0
            self.embedded_redis = EmbeddedRedis(self._logs, port)
            address = self.embedded_redis.start()
        if link := self.links.get("redis"):
            link.lead_to(urlsplit(address.url).netloc)
        return address

    def _open_postgres(self) -> SqlAddress:
        if self._spec.sql:
            return postgresql.external(self._spec.sql, self._schema)
        on_small_disk = "postgresql" in registry.own_disks(self._spec.fault)
        self.embedded_postgres = server = EmbeddedPostgres(self._logs, self._schema, on_small_disk=on_small_disk)
        address = server.start()
        if link := self.links.get("postgresql"):
            link.lead_to(_host_and_port(address.url))
        return address

    def _as_engine_sees(self, kafka: KafkaAddress, of_redis: RedisAddress) -> Mapping[str, Any]:
        if "kafka" in self.links:
            kafka = KafkaAddress(self.links["kafka"].address)
        if "redis" in self.links:
            of_redis = RedisAddress(f"redis://{self.links['redis'].address}/0")
        sql = self._sql
        if sql and (link := self.links.get("postgresql")):
            sql = replace(sql, url=sql.url.replace(_host_and_port(sql.url), link.address))
        if self._manifest.orders == "yahoo":
            yahoo_conf.refuse(kafka, of_redis)
        return {"kafka": kafka, "redis": of_redis, "sql": sql}

    def once_of_kafka(self, ask: Callable[[], T]) -> T:
        """See `Serving.call`."""
        return self._kafka_serves.call(ask)

    def query_kafka(self, ask: Callable[[], T]) -> T:
        return self._kafka_serves.retry(ask, again=self._settled())

    def query_redis(self, ask: Callable[[], T]) -> T:
        return self._redis_serves.retry(ask, again=self._settled())

    def query_sql(self, ask: Callable[[], T]) -> T:
        return self._sql_serves.retry(ask, again=self._settled())

    def reachable(self) -> bool:
        """Check with a short timeout, since a fault may block them."""
        kafka_serves = not self.embedded_kafka or self.embedded_kafka.serves()
        sql_serves = not self.embedded_postgres or self.embedded_postgres.serves()
        return kafka_serves and sql_serves and self._redis_answers()

    def _redis_answers(self) -> bool:
        if self.embedded_redis is None:
            return True
        with self.embedded_redis.client(HURRIED_S) as client, suppress(redis.RedisError):
            return bool(client.ping())
        return False

    def pids(self) -> Mapping[str, Sequence[int]]:
        """Return the pids of our own services."""
        services = {"kafka": self.embedded_kafka, "redis": self.embedded_redis, "postgresql": self.embedded_postgres}
        return {part: service.pids() for part, service in services.items() if service}

    def close(self) -> None:
        for service in (self.embedded_kafka, self.embedded_redis, self.embedded_postgres):
            if service:
                service.stop()
        for link in self.links.values():
            link.stop()

    def _place_of_redis(self) -> str:
        return redacted(self._spec.redis) if self.embedded_redis is None else self.embedded_redis.address.url

    def _place_of_sql(self) -> str:
        return redacted(self._sql.url) if self._sql else ""


def _host_and_port(url: str) -> str:
    return urlsplit(url).netloc.rpartition("@")[2]


def _child_of(service: Embedded[Any] | None) -> Child | None:
    return service.child if service else None
