"""The real world of a run: Kafka, Redis, a fleet of Locust users and an engine process, embedded or external."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import redis

from harness.engines import environments
from harness.engines import manifest as manifests
from harness.engines.config import EngineConfig
from harness.engines.group_progress import GroupProgress, committed_offsets
from harness.engines.job import Surroundings
from harness.engines.process import TOOL_OPTIONS, ProcessEngine
from harness.engines.warm import COLD, Starts
from harness.faults import registry
from harness.host import pinning, quota
from harness.host.quota import Quota
from harness.install import jvm
from harness.load.fleet import Load
from harness.metering.clock_steps import ClockWatch
from harness.model import EngineManifest, KafkaAddress, RedisAddress, RunSpec, is_remote_master, redacted
from harness.rundir.store import Store
from harness.runner.world import tables
from harness.runner.world.fleet import RealFleet
from harness.runner.world.host import RealHost
from harness.runner.world.log import RealLog
from harness.runner.world.results import RealResults
from harness.runner.world.servers import RealServers
from harness.runner.world.services import Services
from harness.services import claim, kafka, live_page, made, owners, postgresql, small_disk
from harness.services.small_disk import SmallDisk
from harness.util.texts import many
from workloads.registry import results_of


class RealWorld:
    """See `harness.runner.world.base.World`."""

    def __init__(
        self,
        spec: RunSpec,
        manifest: EngineManifest,
        surroundings: Surroundings,
        store: Store,
        starts: Starts = COLD,
        *,
        load_of: type[Load] = Load,
    ) -> None:
        self._spec, self._manifest, self._surroundings, self._store = spec, manifest, surroundings, store
        self._starts, self._tables = starts, results_of(spec.tape).tables
        sys.path += [str(each) for each in surroundings.packages if str(each) not in sys.path]
        self._name = made.of_this_run_alone(store.path.name)
        self._topic = f"streamgauge-{self._name}"
        self._schema = f"streamgauge_{self._name.rpartition('-')[2]}"  # random, and short enough for PostgreSQL
        self._left: list[str] = []
        self._private = _private_folder("streamgauge-")
        # The only folder whose path the engine gets: none of our files lies beside it.
        self._engines_own = own = _private_folder("streamgauge-engine-")
        self._again: ProcessEngine | None = None  # the batch engine of a backfill
        self._clock_watch = ClockWatch(store)
        self._load = load = load_of(spec, self._topic, store.path, self._private)
        self.clock, self.fault = store.clock, registry.create(spec, manifest)
        settled = self.fault.settled
        self._services = services = Services(spec, manifest, store.logs, starts, settled, schema=self._schema)
        self.engine = engine = self._make_engine()
        self.results = RealResults(spec, manifest, services, engine, store)
        private = self._private / "recount"
        self.log = RealLog(spec, services, engine, load, store, files=own / "history", private=private)
        self.servers = RealServers(
            spec, services, fault=self.fault, engine=engine, results=self.results, log=self.log, load=load
        )
        self.fleet = RealFleet(load, spec.tape.senders, store, self._unserved)
        self.host = RealHost(engine, store, own, self._roots)

    def open(self) -> None:
        self._clock_watch.start()
        if self._manifest.on_spark and is_remote_master(self._spec.master):
            self._store.tell("executors", at_ms=self.clock.now_ms(), told=self.engine.prove_executors())
        self._services.start_proxies()
        self._mount_disk()
        if self._manifest.waits_for_services and not self._spec.tape.waits:
            self.engine.start()
        self._load.start()
        addresses = self._services.open()
        address = self._services.kafka
        made.create(address, self._topic, self._spec.tape.partitions, appended=self._spec.time == "append")
        if self._manifest.group:
            kafka.begin_group(address, self._manifest.group, self._topic)
        self.results.open()
        if self._spec.redis:
            claim.expect(self._services.client, self.results.patterns())
        tables.write_to_redis(self._services.client, self._tables)
        tables.write_to_kafka(address, self._topic, self._tables)
        self.results.store.prepare()
        self._services.watch_refusals(self._topic)
        self.engine.change(addresses)
        if self._manifest.progress_group:
            self.engine.follow(self._group_progress(self._manifest.progress_group, address))
        self._load.tell(address)

    def _group_progress(self, named: str, address: KafkaAddress) -> GroupProgress:
        """Connect directly to Kafka, so that network faults do not affect it."""
        config = self.engine.config
        group = named.format(run=config.run, topic=config.topic)
        committed = committed_offsets(address, group, self._topic)
        return GroupProgress(committed, Path(config.progress_path))

    def _mount_disk(self) -> None:
        """Mount a small disk for the checkpoint if a planned fault fills it, and if that is possible."""
        is_wanted = "checkpoint" in registry.own_disks(self._spec.fault)
        if is_wanted and not self._spec.checkpoint and not small_disk.impossible():
            self.servers.disk = SmallDisk(self._engines_own / "checkpoint")
            self.servers.disk.mount()

    def _make_engine(self) -> ProcessEngine:
        """The engine gets its services' addresses later, when they answer."""
        spec, name = self._spec, self._name
        config = EngineConfig(
            run=name,
            kafka=KafkaAddress(""),
            topic=self._topic,
            redis=RedisAddress(""),
            window_ms=spec.window_ms,
            watermark_ms=spec.watermark_ms,
            checkpoint=f"{spec.checkpoint.rstrip('/') or self._engines_own / 'checkpoint'}/{name}",
            progress_path=str(self._engines_own / "progress.jsonl"),
            crash_path=str(self._engines_own / "crash"),
            folder=str(self._make_folder()),
            sink=spec.sink,
            trigger=spec.trigger,
            master=spec.master,
            options={**self._manifest.options, **spec.conf},
            checksum=spec.tape.checksum,
            partitions=spec.tape.partitions,
            results_topic=self._results_topic,
            jars=tuple(map(str, self._surroundings.jars)),
            java_options=self._starts.engine.options,
            time=spec.time,
        )
        own, kept = self._engines_own, self._store.path
        return self._process(self._manifest, config, self._surroundings, own, (self._store.logs, kept / "evidence"))

    def _process(
        self,
        manifest: EngineManifest,
        config: EngineConfig,
        surroundings: Surroundings,
        private: Path,
        kept: tuple[Path, Path],
    ) -> ProcessEngine:
        """Make an engine of this run. `kept` holds the folders of its logs and its evidence."""
        logs, evidence = kept
        java_home = str(Path(jvm.java()).resolve().parent.parent)
        return ProcessEngine(
            manifest,
            config,
            logs=logs,
            evidence=evidence,
            private=private,
            env={"JAVA_HOME": os.environ.get("JAVA_HOME", java_home), **self._tool_options()},
            surroundings=surroundings,
            cores=pinning.last(self._spec.cores),
            quota=Quota(self._spec.cores) if quota.is_part(self._spec.cores) else None,
        )

    def _tool_options(self) -> dict[str, str]:
        """Options on a JVM's command line take precedence over these."""
        own = os.environ.get(TOOL_OPTIONS, "")
        return {TOOL_OPTIONS: " ".join([own, *self._starts.every_option]).strip()} if self._starts.every_option else {}

    def _make_folder(self) -> Path:
        folder = self._engines_own / "folder"
        folder.mkdir()
        return folder

    def _roots(self) -> Mapping[str, Sequence[int]]:
        parts = {**self._services.pids(), "engine": self.engine.pids(), "generator": self._load.pids}
        return parts | ({live_page.NAME: page} if (page := live_page.pids()) else {})

    def _unserved(self) -> str:
        return (self.servers.gone() or self.servers.refused()) if self.fault.settled() else ""

    @property
    def _results_topic(self) -> str:
        """Return the results topic, made for this run alone; "" if results are elsewhere."""
        name = self._manifest.results_topic
        return f"{self._topic}-{name}" if name else ""

    def count_again(self) -> ProcessEngine:
        self.results.forget()
        manifest = manifests.load(self._spec.backfill, self._spec.workload)
        sink = manifest.batch_sink
        assert sink  # otherwise the run was refused before
        surroundings = environments.prepare(manifest, lambda _: None)
        private, kept = self._engines_own / "backfill", self._store.path / "backfill"
        for folder in (private, kept):
            folder.mkdir()
        config = replace(
            self.engine.config,
            sink=sink.name,
            checkpoint=str(private / "checkpoint"),
            progress_path=str(private / "progress.jsonl"),
            crash_path=str(private / "crash"),
            options={**manifest.options, **self._spec.conf},
            jars=tuple(map(str, surroundings.jars)),
            java_options=(),  # an archive of classes fits one job only
        )
        self._again = self._process(manifest, config, surroundings, private, (kept, kept / "evidence"))
        return self._again

    def close(self) -> None:
        """Close each part separately: one that can't be stopped in order must not keep the others alive."""
        self.results.stop_observing()
        self._clock_watch.stop()
        self._load.stop()
        for engine in filter(None, (self.engine, self._again)):
            engine.stop()
        self.results.close()
        if self._spec.kafka and self._services.are_open:
            self._left += made.delete_own(self._services.kafka, self._topic)
        if self._spec.redis and self._services.are_open:
            self._left += self._release_database()
        if self._spec.sql and (schema := self._services.sql):
            self._left += filter(None, [postgresql.drop_schema(schema)])
        self._services.close()
        if self.servers.disk:
            self.servers.disk.unmount()
        owners.release_folder(self._engines_own)
        owners.release_folder(self._private)

    def _release_database(self) -> list[str]:
        place = redacted(self._spec.redis)
        try:
            stay = claim.release(self._services.client)
        except redis.RedisError as error:
            return [f"The keys of this run stay in Redis at {place}, which refused to record them: {error}."]
        return (
            [
                f"{many(stay, 'key')} of this run {'stays' if stay == 1 else 'stay'} in Redis at {place}; the next run "
                "with --reset deletes them."
            ]
            if stay
            else []
        )

    def stays(self) -> tuple[str, ...]:
        return tuple(self._left)


def _private_folder(prefix: str) -> Path:
    """Make a new folder, which is deleted when the run ends or is swept."""
    return owners.lease_folder(Path(tempfile.mkdtemp(prefix=prefix)))
