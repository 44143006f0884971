"""The real world of a run: Kafka, Redis, a fleet of Locust users and an engine process, embedded or external."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import psutil
import redis

from harness.config import server_needs
from harness.engines import complaint, environments
from harness.engines import manifest as manifests
from harness.engines.base import Engine
from harness.engines.config import EngineConfig
from harness.engines.group_progress import GroupProgress, committed_offsets
from harness.engines.job import Surroundings
from harness.engines.process import TOOL_OPTIONS, ProcessEngine
from harness.engines.warm import COLD, Starts
from harness.faults import registry
from harness.faults.moment import Field
from harness.host import cgroup, cpu_starvation, disk_space
from harness.host.cpu_starvation import Machine, Threads
from harness.host.oom_kills import Memory
from harness.install import jvm
from harness.judging.questions import keys_of
from harness.kafka_log import parallel_readers
from harness.kafka_log.parallel_readers import LogSource
from harness.load.adaptive_load import GrowingLoad
from harness.load.fleet import Load, send_marks
from harness.metering.accounting import Accounting
from harness.metering.clock_steps import ClockWatch
from harness.model import (
    EVENT_TIME,
    Certificate,
    Change,
    EngineManifest,
    Expiring,
    FileSeam,
    HarnessError,
    KafkaAddress,
    LoadStatus,
    RedisAddress,
    RunSpec,
    Segment,
    Sentinel,
    redacted,
)
from harness.results import registry as sources
from harness.results.base import Observer, Place, ResultStore, keys_of_campaigns
from harness.results.change_watch import Changes
from harness.results.redis_scan import OURS as NO_RESULTS
from harness.results.redis_scan import Row
from harness.results.sampler import Sampled
from harness.rundir.store import Store
from harness.runner.world import tables
from harness.runner.world.base import ServiceGone, Spoiled
from harness.runner.world.history_files import HistoryFiles, Moments
from harness.runner.world.server_refusals import Refusals
from harness.runner.world.services import Services
from harness.runner.world.topic import TopicLog
from harness.services import claim, kafka, made, owners, small_disk
from harness.services.redis import keys_elsewhere
from harness.services.small_disk import SmallDisk
from harness.util.texts import many
from workloads.registry import codec_of, length_ms_of, results_of

T = TypeVar("T")
OURS, PAGE = "streamgauge:", 1000  # prefix of our own keys in Redis; keys per delete request


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
        self._starts, self._load_of = starts, load_of
        self._codec = codec_of(spec.tape)
        self._keys, self._tables = keys_of(spec), results_of(spec.tape).tables
        self._name = made.of_this_run_alone(store.path.name)
        self._topic = f"streamgauge-{self._name}"
        self._left: list[str] = []
        self._refusals: Refusals | None = None
        self._private = _private_folder("streamgauge-")
        # The only folder whose path the engine gets: none of our files lies beside it.
        self._engines_own = _private_folder("streamgauge-engine-")
        self._disk: SmallDisk | None = None
        self._load: Load | None = None
        self._log: TopicLog | None = None
        self._engine: ProcessEngine | None = None
        self._again: ProcessEngine | None = None  # the batch engine of a backfill
        self._results: ResultStore | None = None
        self._observer: Observer | None = None
        self._changes: Changes | None = None
        self._accounting: Accounting | None = None
        self._clock_watch = ClockWatch(store)
        self.fault = fault = registry.create(spec, manifest)
        self._services = Services(spec, manifest, store.logs, starts, fault.settled)

    @property
    def engine(self) -> ProcessEngine:
        if self._engine is None:
            raise HarnessError("The engine was requested before the services were open.")
        return self._engine

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
            self._topic,
            services.client,
            self._keys,
            lambda client: tables.write_to_redis(client, self._tables),
            services.links,
            self._log if services.embedded_kafka else None,
            disk=self._disk,
        )

    def now_ms(self) -> int:
        return self._store.clock.now_ms()

    def pause(self, seconds: float) -> None:
        time.sleep(seconds)

    def open(self) -> None:
        self._clock_watch.start()
        self._services.start_proxies()
        self._mount_disk()
        self._engine = self._make_engine()
        if self._manifest.waits_for_services and not self._spec.tape.waits:
            self._engine.start()
        self._load = self._load_of(self._spec, self._topic, self._store.path, self._private)
        self._load.start()
        addresses = self._services.open()
        address = self._services.kafka
        made.create(address, self._topic, self._spec.tape.partitions, appended=self._spec.time == "append")
        if self._manifest.group:
            kafka.begin_group(address, self._manifest.group, self._topic)
        self._results = sources.open_results(self._place())
        if self._spec.redis:
            claim.expect(self._services.client, self._patterns(self._results))
        tables.write_to_redis(self._services.client, self._tables)
        tables.write_to_kafka(address, self._topic, self._tables)
        self._results.prepare()
        self._refusals = Refusals(
            address if address.external else None,
            self._services.client if self._spec.redis else None,
            redacted(self._spec.redis),
            self._topic,
            server_needs.wanted(self._spec, self._manifest),
        )
        self._engine.change(addresses)
        if self._manifest.progress_group:
            self._engine.follow(self._group_progress(self._manifest.progress_group, address))
        self._load.tell(address)
        self._log = TopicLog(self._spec, address, self._topic, self._load.signal, self._store)

    def _group_progress(self, named: str, address: KafkaAddress) -> GroupProgress:
        """Connect directly to Kafka, so that network faults do not affect it."""
        config = self.engine.config
        group = named.format(run=config.run, topic=config.topic)
        committed = committed_offsets(address, group, self._topic)
        return GroupProgress(committed, Path(config.progress_path))

    def _patterns(self, results: ResultStore) -> Iterator[str]:
        """Yield patterns of the Redis keys that this run may write, in case it does not end in order."""
        yield from map(claim.literal, (*self._tables.texts, *self._tables.sets, *self._tables.hashes))
        yield from keys_of_campaigns(self._keys)
        yield from results.patterns()
        for each in self._manifest.sinks:
            yield from each.bookkeeping

    def _mount_disk(self) -> None:
        """Mount a small disk for the checkpoint if a planned fault fills it, and if that is possible."""
        if registry.wants_own_disk(self._spec.fault) and not self._spec.checkpoint and not small_disk.impossible():
            self._disk = SmallDisk(self._engines_own / "checkpoint")
            self._disk.mount()

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
        )

    def _tool_options(self) -> dict[str, str]:
        """Options on a JVM's command line take precedence over these."""
        own = os.environ.get(TOOL_OPTIONS, "")
        return {TOOL_OPTIONS: " ".join([own, *self._starts.every_option]).strip()} if self._starts.every_option else {}

    def _make_folder(self) -> Path:
        folder = self._engines_own / "folder"
        folder.mkdir()
        return folder

    @property
    def load(self) -> Load:
        if self._load is None:
            raise HarnessError("The fleet was requested before the services were open.")
        return self._load

    def await_fleet(self) -> str:
        with self._without_services():
            self.load.wait_ready()
        self._store.tell("fleet", servers=self._spec.tape.senders, nice=self.load.nice)
        return self.load.web_url

    def send_marks(self, marks: Sequence[Sentinel]) -> None:
        self._services.once_of_kafka(lambda: send_marks(self._services.kafka, self._topic, marks, self._codec))

    def start_load(self, epoch_ms: int) -> None:
        self.load.go(epoch_ms, self._store.clock)

    def extend_load(self, segments: Sequence[Segment]) -> None:
        self._growing.append(segments)

    def complete_load(self) -> None:
        self._growing.complete()

    @property
    def _growing(self) -> GrowingLoad:
        if not isinstance(self.load, GrowingLoad):
            raise HarnessError("A load with a fixed plan can't grow.")
        return self.load

    def load_status(self) -> LoadStatus:
        with self._without_services():
            return self.load.status()

    @contextmanager
    def _without_services(self) -> Iterator[None]:
        """Ad servers may break off because Kafka is gone: then raise ServiceGone."""
        try:
            yield
        except HarnessError as error:
            seen = (self.gone() or self.refused()) if self.fault.settled() else ""
            if not seen:
                raise
            raise ServiceGone(f"{seen}; {error}") from error

    def certify(self) -> Certificate:
        return self.load.certify()

    def start_accounting(self) -> None:
        self._accounting = Accounting(self.roots, self.engine.checkpoint, self._store)
        self._accounting.start()

    def stop_accounting(self) -> None:
        if self._accounting:
            self._accounting.stop()
            self._accounting = None

    def roots(self) -> Mapping[str, int]:
        """Return the parts that are our processes, each with its root process."""
        children = {"engine": self.engine.pid, "generator": self.load.pid}
        return {**self._services.pids(), **{part: pid for part, pid in children.items() if pid}}

    @property
    def _results_topic(self) -> str:
        """Return the results topic, made for this run alone; "" if results are elsewhere."""
        name = self._manifest.results_topic
        return f"{self._topic}-{name}" if name else ""

    def _place(self) -> Place:
        spec = self._spec
        return Place(
            client=self._services.client,
            kafka=self._services.kafka,
            topic=self._results_topic,
            campaigns=self._keys,
            tables=self._tables.kinds,
            window_ms=spec.window_ms,
            length_ms=length_ms_of(spec),
            watermark_ms=spec.watermark_ms,
            manifest=self._manifest,
            config=self.engine.config_path,
            log=self._store.logs / "results.log",
            clock=self._store.clock,
            parts=results_of(spec.tape).parts,
            number=results_of(spec.tape).number,
        )

    @property
    def _read(self) -> ResultStore:
        if self._results is None:
            raise HarnessError("The results were requested before the services were open.")
        return self._results

    def start_observing(self) -> None:
        results = sources.open_results(self._place())  # a separate one: another thread reads it
        self._observer = results.observer(self._spec.tape)
        if self._observer:
            self._observer.start()
        else:
            self._changes = Changes(results.snapshot, results.close, self._store.clock)
            self._changes.start()

    def stop_observing(self) -> Sampled | None:
        observer, self._observer = self._observer, None
        changes, self._changes = self._changes, None
        if changes:
            changes.stop()
        return observer.stop() if observer else None

    def shows(self, key: int, field: int) -> bool:
        return self._observer is None or self._observer.shows(key, field)

    def changed(self) -> Change | None:
        watch = self._observer or self._changes
        return watch.changed() if watch else None

    def threads(self) -> Threads:
        return cpu_starvation.threads_of(member.pid for member in self.engine.members())

    def machine(self) -> Machine:
        return cpu_starvation.machine()

    def free(self) -> Mapping[str, int]:
        """Exclude the small disk that a fault fills: it lies below the engine's own folder."""
        return disk_space.free_below([self._store.path, self._engines_own])

    def memory(self) -> Memory:
        return Memory(cgroup.memory_bytes(), cgroup.killed_for_memory())

    def move_to_files(self, until_ms: int) -> FileSeam:
        if self._log is None:
            raise HarnessError("A history was requested before the services were open.")
        folder = self._engines_own / "history"
        folder.mkdir()
        files = HistoryFiles(self._services.kafka, self._topic, self._log, self._codec, folder)
        found = files.move(Moments(self._spec.tape, until_ms), self._spec.seam)
        if self._refusals:
            self._refusals.moved()
        self.engine.change({"history": found})
        return found.seam

    def count_again(self) -> ProcessEngine:
        self._forget_results()
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

    def _forget_results(self) -> None:
        """Delete the results, and what the job keeps beside them."""
        keys = sorted({row.key for row in self.results() if not row.key.startswith(OURS)})
        for start in range(0, len(keys), PAGE):
            self._services.client.delete(*keys[start : start + PAGE])

    def cpu_s(self, engine: Engine) -> float:
        used = 0.0
        for member in engine.members():
            with suppress(psutil.NoSuchProcess):
                times = psutil.Process(member.pid).cpu_times()
                used += sum(times[:4])  # its own and its ended children's, user and system
        return used

    def end_offsets(self) -> Mapping[int, int]:
        services = self._services
        return services.query_kafka(lambda: kafka.end_offsets(services.kafka, self._topic))

    def gone(self) -> str:
        seen, services = [], self._services
        results = (self.snapshot,) if self._read.service else ()
        for query in (lambda: services.query_redis(services.client.ping), self.end_offsets, *results):
            try:
                query()
            except ServiceGone as gone:
                seen.append(str(gone))
        return "; ".join(dict.fromkeys(seen))

    def refused(self) -> str:
        words = "\n".join([*self.engine.last_words().lines, *self.engine.tail(complaint.REMEMBERED)])
        if not self._refusals:
            return ""
        return "; ".join(filter(None, (self._throttled(self._refusals), self._refusals.of_failed(words))))

    def spoiled(self) -> Spoiled:
        if not self._refusals:
            return Spoiled()
        return Spoiled(self._refusals.evicted(), self._refusals.cut(), self._throttled(self._refusals))

    def _throttled(self, refusals: Refusals) -> str:
        return refusals.throttled(self.load.throttled_ms(), self._spec.lag_budget_ms)

    def _query_results(self, ask: Callable[[], T]) -> T:
        services = self._services
        query = {"kafka": services.query_kafka, "redis": services.query_redis}
        return query[self._read.service](ask) if self._read.service else ask()

    def snapshot(self) -> object:
        return self._query_results(self._read.snapshot)

    def reachable(self) -> bool:
        return self.fault.settled() or self._services.reachable()

    def results(self) -> list[Row]:
        return self._query_results(self._read.rows)

    def expiring(self) -> Expiring | None:
        others = (*NO_RESULTS, *(pattern for each in self._manifest.sinks for pattern in each.bookkeeping))
        return self._query_results(lambda: self._read.expiring(others))

    def other_databases(self) -> Mapping[int, int]:
        return self._services.query_redis(lambda: keys_elsewhere(self._services.client))

    def read_log(self) -> Generator[Mapping[str, Any]]:
        ends, services, spec = self.end_offsets(), self._services, self._spec
        topic = LogSource(services.kafka, self._topic, spec.tape, stamped=spec.time != EVENT_TIME)
        with closing(parallel_readers.read_in_parts(topic, ends, self._store.logs)) as read:
            parts = iter(self._log.all_records(read) if self._log else read)
            # A refused part is not delivered again, and a reader that goes on would lose it.
            while (part := services.once_of_kafka(lambda: next(parts, None))) is not None:
                yield part

    def close(self) -> None:
        """Close each part separately: one that can't be stopped in order must not keep the others alive."""
        self.stop_observing()
        self._clock_watch.stop()
        if self._load:
            self._load.stop()
        for engine in filter(None, (self._engine, self._again)):
            engine.stop()
        if self._results:
            self._results.close()
        if self._spec.kafka and self._services.are_open:
            self._left += made.delete_own(self._services.kafka, self._topic)
        if self._spec.redis and self._services.are_open:
            self._left += self._release_database()
        self._services.close()
        if self._disk:
            self._disk.unmount()
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
