"""A job on Spark's Structured Streaming, whatever it asks: its session, its source, its progress, its end.

A job hands over its query; started again with the same checkpoint it goes on where it was.
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

from workloads.jobs.orders import OWN_OPTION, Config, await_services, engine_options
from workloads.jobs.progress_log import ProgressLog

JAVA_OPTIONS = "spark.driver.extraJavaOptions"
CLASS_PATH = "spark.driver.extraClassPath"
# As an executor of a cluster does. In one JVM Spark lives on without the thread that had asked for memory, and if that
# was its scheduler nothing moves any more.
ENDS_WITHOUT_HEAP = "-XX:+ExitOnOutOfMemoryError"
STOP_PATIENCE_S = 5.0
LOT = "logOffset"  # what a source of files tells: so many lots of them were taken
COPIED = "rocksdbBytesCopied"  # into the checkpoint; of the heap Spark does not tell it
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

SOURCE_OPTION = OWN_OPTION + "source."  # the rest of the name is an option of Spark's Kafka source

Reader = TypeVar("Reader", DataStreamReader, DataFrameReader)
Writer = Callable[[DataFrame, int], None]  # what a batch holds, and its number


def session_settings(config: Config) -> dict[str, str]:
    """All that is not Spark's default; what `--conf` says wins."""
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
    """Where one JVM does all, on its class path: an archive of classes holds none of those that Spark loads itself."""
    in_one_jvm = config["master"].partition("[")[0] == "local"
    return {CLASS_PATH: ":".join(config["jars"])} if in_one_jvm else {"spark.jars": ",".join(config["jars"])}


def make_session(config: Config) -> SparkSession:
    if config["master"].startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master(config["master"]).appName(f"streamgauge-{config['run']}")
    for key, value in session_settings(config).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def read_records(session: SparkSession, config: Config) -> DataFrame:
    return of_topic(session.readStream, config).load()


def of_topic(reader: Reader, config: Config) -> Reader:
    """All of it, whether as a stream or as a batch."""
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
    """`ends`: with what there is now, instead of waiting for more."""
    writer = stream.writeStream.outputMode(mode).foreachBatch(write).option("checkpointLocation", config["checkpoint"])
    return (writer.trigger(availableNow=True) if ends else writer.trigger(processingTime=config["trigger"])).start()


class Progress(StreamingQueryListener):
    """Writes a line per batch. Spark reports them some time after the commit, so a crash may lose the last ones."""

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
    """Of Kafka. While files are read nothing of it is told: the checkpoint says how far they are."""
    told = [json.loads(source.endOffset) for source in progress.sources if source.endOffset]
    topics = [each for each in told if LOT not in each]
    if len(told) > len(topics) and progress.sources[0].numInputRows:
        return {}
    return {partition: end for topic in topics for offsets in topic.values() for partition, end in offsets.items()}


def state_bytes(operator: StateOperatorProgress) -> int:
    """What the live state fills. RocksDB's "memory used" only ever grows, by the tables of all versions it has open."""
    return int(operator.customMetrics.get("rocksdbSstFileSize", operator.memoryUsedBytes))


def epoch_ms(timestamp: str) -> int:
    """Spark's `2026-11-21T10:00:00.000Z`; 0 where there is no watermark."""
    return round(datetime.fromisoformat(timestamp).timestamp() * 1000) if timestamp else 0


def stop_between_batches(query: StreamingQuery) -> None:
    """A batch that is stopped in the middle ends in a thousand lines of stack: let it finish, if it takes not long."""
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
    """Run until SIGTERM. Python alone takes the signal: the JVM has to live until the query is stopped.

    `before`: a query that comes to its end before this one begins, unless it has come there in an earlier life.
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
        reason, _, _ = str(failure).partition("\n=== Streaming Query ===")  # then comes the plan, pages of it
        print(f"The query failed: {reason.strip()}", file=sys.stderr)
    return 1 if failure else 0


def own_settings(config: Config) -> dict[str, str]:
    """For those who compare. Of the connectors the names tell the version; where they lie is nobody's concern."""
    own = {key: value for key, value in config["options"].items() if key.startswith(OWN_OPTION)}
    jars = ", ".join(Path(jar).name for jar in config["jars"])
    settings = {**session_settings({**config, "java_options": ""}), **own}
    return settings | dict.fromkeys(connectors(config), jars)
