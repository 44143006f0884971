"""The topic of a real run."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from functools import cached_property
from pathlib import Path
from typing import Any

from harness.engines.process import ProcessEngine
from harness.judging.stored_run import StoredRun
from harness.kafka_log import parallel_readers
from harness.kafka_log.parallel_readers import LogSource
from harness.kafka_log.recount import Columns
from harness.load.fleet import Load, send_marks
from harness.model import EVENT_TIME, FileSeam, HarnessError, RunSpec, Sentinel
from harness.rundir.missing_evidence import MissingEvidence
from harness.rundir.store import Store
from harness.runner.world import spark_recount
from harness.runner.world.history_files import HistoryFiles, Moments
from harness.runner.world.recount_task import Recount
from harness.runner.world.services import Services
from harness.runner.world.topic import TopicLog
from harness.services import kafka
from workloads.registry import codec_of


class RealLog:
    """See `harness.runner.world.base.Log`. `files` is the folder of the history, in which the engine finds it.
    `private` is a folder that vanishes, for Spark.
    """

    def __init__(
        self,
        spec: RunSpec,
        services: Services,
        engine: ProcessEngine,
        load: Load,
        store: Store,
        *,
        files: Path,
        private: Path,
    ) -> None:
        self._spec, self._services, self._engine, self._load, self._store = spec, services, engine, load, store
        self._topic, self._codec, self._files = engine.config.topic, codec_of(spec.tape), files
        self._private = private

    @cached_property
    def kept(self) -> TopicLog:
        """The records that faults remove or add. Kafka must be open."""
        return TopicLog(self._spec, self._services.kafka, self._topic, self._load.signal, self._store)

    def send(self, marks: Sequence[Sentinel]) -> None:
        services = self._services
        services.once_of_kafka(lambda: send_marks(services.kafka, self._topic, marks, self._codec))

    def ends(self) -> Mapping[int, int]:
        services = self._services
        return services.query_kafka(lambda: kafka.end_offsets(services.kafka, self._topic))

    def read(self) -> Generator[Mapping[str, Any]]:
        ends, services, spec = self.ends(), self._services, self._spec
        topic = LogSource(services.kafka, self._topic, spec.tape, stamped=spec.time != EVENT_TIME)
        with closing(self._read(topic, ends)) as read:
            parts = iter(self.kept.all_records(read))
            # A refused part is not delivered again, and a reader that goes on would lose it.
            while (part := services.once_of_kafka(lambda: next(parts, None))) is not None:
                yield part

    def _read(self, topic: LogSource, ends: Mapping[int, int]) -> Generator[Columns]:
        """Read the topic by Spark if that is wanted. If Spark fails, nothing is lost: it is read here."""
        if any(ends.values()) and spark_recount.is_wanted(self._spec):
            try:
                return self._read_by_spark(topic, ends)
            except (HarnessError, MissingEvidence) as error:
                self._store.tell("recount", by="here", answer=None, why=str(error))
        return parallel_readers.read_in_parts(topic, ends, self._store.logs)

    def _read_by_spark(self, topic: LogSource, ends: Mapping[int, int]) -> Generator[Columns]:
        run, conf = StoredRun(self._store), self._spec.conf if self._engine.manifest.on_spark else {}
        asked = Recount(topic, self._spec, run.epoch_ms, run.marks)
        log = self._store.logs / "recount-spark.log"
        answer = spark_recount.recounted(asked, ends, conf, self._private, log)
        # A fault may have removed records, which were read before: then the topic is not the whole log.
        told = None if self.kept.has_more else answer.recounted
        self._store.tell("recount", by="spark", answer=told, used=answer.used)
        return spark_recount.parts_in(self._private, asked)

    def move_to_files(self, until_ms: int) -> FileSeam:
        self._files.mkdir()
        files = HistoryFiles(self._services.kafka, self._topic, self.kept, self._codec, self._files)
        found = files.move(Moments(self._spec.tape, until_ms), self._spec.seam)
        if self._services.refusals:
            self._services.refusals.moved()
        self._engine.change({"history": found})
        return found.seam
