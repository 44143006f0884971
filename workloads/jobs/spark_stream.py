"""The shared part of all jobs on Spark's Structured Streaming: session, source, progress, end.

A job provides its query; with the same checkpoint it continues where it was.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StateOperatorProgress,
    StreamingQueryListener,
    StreamingQueryProgress,
)
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamReader

from workloads.jobs import spark_tasks
from workloads.jobs.progress_log import ProgressLog, tell_settings
from workloads.jobs.run_config import OWN_OPTION, Config, await_services, engine_options, read_config

JAVA_OPTIONS = "spark.driver.extraJavaOptions"
CLASS_PATH = "spark.driver.extraClassPath"
# As on an executor of a cluster. In one JVM Spark survives when a thread runs out of memory, but hangs if that thread
# was its scheduler.
ENDS_WITHOUT_HEAP = "-XX:+ExitOnOutOfMemoryError"
TASKS = "org.apache.spark.scheduler.TaskSetManager"
STOP_PATIENCE_S = 5.0
LOT = "logOffset"  # in the offset of a file source: the number of batches of files so far
COPIED = "rocksdbBytesCopied"  # bytes copied into the checkpoint; Spark does not report them for the heap's store
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

SOURCE_OPTION = OWN_OPTION + "source."  # the rest of the name is an option of Spark's Kafka source

Reader = TypeVar("Reader", DataStreamReader, DataFrameReader)
Writer = Callable[[DataFrame, int], None]  # a batch's rows, and its number


def session_settings(config: Config) -> dict[str, str]:
    """Return all settings that are not Spark's defaults. Those of `--conf` take precedence."""
    settings = {
        **connectors(config),
        "spark.log.level": "ERROR",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "2g",
        "spark.local.dir": tempfile.gettempdir(),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
    }
    settings |= engine_options(config)
    ours = f"{ENDS_WITHOUT_HEAP} -Djava.io.tmpdir={tempfile.gettempdir()} {config['java_options']}"
    settings[JAVA_OPTIONS] = f"{ours} {settings.get(JAVA_OPTIONS, '')}"
    return settings


def connectors(config: Config) -> dict[str, str]:
    """Return the settings for the connectors. The driver has them on its class path, because its archive of classes
    fits only the class path with which it was made. Executors that are other JVMs get them from the driver.
    """
    on_driver = {CLASS_PATH: ":".join(config["jars"])}
    return on_driver if in_one_jvm(config["master"]) else on_driver | {"spark.jars": ",".join(config["jars"])}


def in_one_jvm(master: str) -> bool:
    return master.partition("[")[0] == "local"


def is_here(master: str) -> bool:
    """Return whether all executors are on this machine: those of a local master, or of one that listens here alone."""
    servers = master.removeprefix("spark://").split(",")
    return master.startswith("local") or all(
        server.rpartition(":")[0] in ("127.0.0.1", "localhost", "[::1]") for server in servers
    )


def make_session(config: Config) -> SparkSession:
    if is_here(config["master"]):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # without it, the driver listens on an outside address
    builder = SparkSession.builder.master(config["master"]).appName(f"streamgauge-{config['run']}")
    for key, value in session_settings(config).items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    if not in_one_jvm(config["master"]):
        _log_lost_tasks(session)
        spark_tasks.listen(session, Path(config["crash_path"]))
    return session


def _log_lost_tasks(session: SparkSession) -> None:
    """Let Spark log each task that it lost and tries again: a warning, which our log level leaves out."""
    log4j: Any = session._jvm.org.apache.logging.log4j  # type: ignore[union-attr]
    log4j.core.config.Configurator.setLevel(TASKS, log4j.Level.WARN)


def read_records(session: SparkSession, config: Config) -> DataFrame:
    return of_topic(session.readStream, config).load()


def of_topic(reader: Reader, config: Config) -> Reader:
    """Configure a reader of the whole topic, as a stream or as a batch."""
    options = config["options"].items()
    return (
        reader.format("kafka")
        .option("kafka.bootstrap.servers", config["kafka"]["bootstrap"])
        .options(**{f"kafka.{key}": value for key, value in config["kafka"]["java"].items()})
        .option("subscribe", config["topic"])
        .option("startingOffsets", "earliest")
        .option("failOnDataLoss", "true")
        .option("groupIdPrefix", f"streamgauge-{config['run']}")
        .options(**{key[len(SOURCE_OPTION) :]: value for key, value in options if key.startswith(SOURCE_OPTION)})
    )


def start(
    stream: DataFrame, config: Config, write: Writer, mode: str = "update", *, ends: bool = False
) -> StreamingQuery:
    """Start the query. `ends`: process what is available now, then end."""
    writer = stream.writeStream.outputMode(mode).foreachBatch(write).option("checkpointLocation", config["checkpoint"])
    return (writer.trigger(availableNow=True) if ends else writer.trigger(processingTime=config["trigger"])).start()


class Progress(StreamingQueryListener):
    """Writes a line per batch. Spark reports a batch some time after its commit, so a crash may lose the last
    lines.
    """

    def __init__(self, log: ProgressLog, ended: threading.Event) -> None:
        self._log = log
        self._ended = ended

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        pass

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        self._log.write(**self.line(event.progress))

    def line(self, progress: StreamingQueryProgress) -> dict[str, Any]:
        operators = progress.stateOperators
        return {
            "batch": progress.batchId,
            "rows": progress.numInputRows,
            "offsets": done(progress),
            "watermark_ms": epoch_ms(progress.eventTime.get("watermark", "")),
            "dropped": sum(operator.numRowsDroppedByWatermark for operator in operators),
            "took_ms": progress.batchDuration,
            "state_bytes": sum(map(state_bytes, operators)),
            "state_cells": sum(operator.numRowsTotal for operator in operators),
            "state_updates": sum(operator.numRowsUpdated for operator in operators),
            "memory_bytes": sum(operator.memoryUsedBytes for operator in operators),
            "commit_ms": sum(operator.commitTimeMs for operator in operators),
            "commit_bytes": sum(int(operator.customMetrics.get(COPIED, 0)) for operator in operators),
        }

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        pass

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: ARG002, N802
        self._ended.set()


def done(progress: StreamingQueryProgress) -> dict[str, int]:
    """Return the offsets in Kafka. Empty while files are read, whose progress is in the checkpoint."""
    told = [json.loads(source.endOffset) for source in progress.sources if source.endOffset]
    topics = [each for each in told if LOT not in each]
    if len(told) > len(topics) and progress.sources[0].numInputRows:
        return {}
    return {partition: end for topic in topics for offsets in topic.values() for partition, end in offsets.items()}


def state_bytes(operator: StateOperatorProgress) -> int:
    """Return the size of the live state. RocksDB's "memory used" only grows, by the tables of all versions that are
    open.
    """
    return int(operator.customMetrics.get("rocksdbSstFileSize", operator.memoryUsedBytes))


def epoch_ms(timestamp: str) -> int:
    """Parse Spark's `2026-11-21T10:00:00.000Z`; 0 if there is no watermark."""
    return round(datetime.fromisoformat(timestamp).timestamp() * 1000) if timestamp else 0


def stop_between_batches(query: StreamingQuery) -> None:
    """Stop the query after its current batch, unless that takes too long. A batch that is interrupted logs a thousand
    lines of stack.
    """
    deadline_s = time.monotonic() + STOP_PATIENCE_S
    while query.isActive and query.status["isTriggerActive"] and time.monotonic() < deadline_s:
        time.sleep(0.01)
    query.stop()


def run(
    config: Config,
    begin: Callable[[SparkSession], StreamingQuery],
    listener: Callable[[ProgressLog, threading.Event], Progress] = Progress,
    *,
    before: Callable[[SparkSession], StreamingQuery | None] = lambda _: None,
) -> int:
    """Run until SIGTERM. Python alone handles the signal, because the JVM must live until the query is stopped.

    `before`: a query that must end before this one begins, unless it has ended in an earlier run of the job.
    """
    told, woken = threading.Event(), threading.Event()

    def stop(*_: object) -> None:
        told.set()
        woken.set()

    signal.signal(signal.SIGTERM, stop)
    session = make_session(config)
    await_services(config)
    session.streams.addListener(listener(ProgressLog(config["progress_path"]), woken))
    failure = None
    for each in (before, begin):
        query = each(session)
        if query is None:
            continue
        while query.isActive and not told.is_set():
            woken.wait(0.5)
            woken.clear()
        failure = query.exception()
        stop_between_batches(query)
        if failure or told.is_set():
            break
    session.stop()
    if failure:
        reason, _, _ = str(failure).partition("\n=== Streaming Query ===")  # pages of the plan follow
        print(f"The query failed: {reason.strip()}", file=sys.stderr)
    return 1 if failure else 0


def run_query(config_path: str, begin: Callable[[SparkSession, Config], StreamingQuery]) -> int:
    """Run a job that is one query, from its run config."""
    config = read_config(config_path)
    tell_settings(config["progress_path"], own_settings(config))
    return run(config, lambda session: begin(session, config))


def own_settings(config: Config) -> dict[str, str]:
    """Return the settings for comparisons. Connectors are listed by their file names, which contain the version,
    without their paths.
    """
    own = {key: value for key, value in config["options"].items() if key.startswith(OWN_OPTION)}
    jars = ", ".join(Path(jar).name for jar in config["jars"])
    settings = {**session_settings({**config, "java_options": ""}), **own}
    return settings | dict.fromkeys(connectors(config), jars)
