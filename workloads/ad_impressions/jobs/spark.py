"""The Spark job: ad impressions from Kafka, counted per campaign and window, into Redis.

    python spark.py CONFIG.json

Two shapes of the query. `totals` is the one to show: an event-time window with a watermark, kept in Spark's state, its
totals written as they change. `deltas` has no state: each batch counts its own events and adds them to Redis, and no
event is ever too late. The sink implies the shape. Started again with the same checkpoint it goes on where it was.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (the name everybody knows it by)
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StateOperatorProgress,
    StreamingQueryListener,
)
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamReader

from workloads.ad_impressions.jobs.crash_points import CrashPoints
from workloads.ad_impressions.jobs.id_sums import ID_RANGE, PRIME
from workloads.ad_impressions.jobs.orders import Config, await_services, read_orders
from workloads.ad_impressions.jobs.progress_log import ProgressLog, tell_settings
from workloads.ad_impressions.jobs.redis_results import connect, read_ads
from workloads.ad_impressions.jobs.spark_parse import BEST, ID, PARSERS, Parser, with_ids
from workloads.ad_impressions.jobs.spark_sinks import RETRYING, SINKS, write_batch
from workloads.ad_impressions.jobs.spark_summed_sinks import SUMMED_SINKS, Summed

YEAR_10000_MS = 253_402_300_800_000
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
CLASS_PATH = "spark.driver.extraClassPath"
STOP_PATIENCE_S = 5.0
MAKES_ARCHIVE = ("-XX:ArchiveClassesAtExit=", "-XX:AOTCacheOutput=")
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

OWN_OPTION = "streamgauge."  # meant for this job: Spark never sees it
PARSER_OPTION = OWN_OPTION + "parser"
SOURCE_OPTION = OWN_OPTION + "source."  # the rest of the name is an option of Spark's Kafka source

Reader = TypeVar("Reader", DataStreamReader, DataFrameReader)
Writer = Callable[[DataFrame, int], None]  # counts, number of the batch


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
    settings |= {key: value for key, value in config["options"].items() if not key.startswith(OWN_OPTION)}
    ours = f"-Djava.io.tmpdir={tempfile.gettempdir()} {config['java_options']}"
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
        .options(**{key[len(SOURCE_OPTION) :]: value for key, value in options if key.startswith(SOURCE_OPTION)})
    )


def known_views(views: DataFrame, ads: dict[str, str]) -> DataFrame:
    """Views of known ads as (campaign_id, event_time), with their ids if they come with them. Whatever is not an event
    turns to null and is filtered out."""
    ids = [ID] if ID in views.columns else []
    rows = pa.table({"ad_id": list(ads.keys()), "campaign_id": list(ads.values())})
    campaigns = views.sparkSession.createDataFrame(rows)
    return (
        views.select("ad_id", F.col("event_time").try_cast("long").alias("event_time_ms"), *ids)
        .where(F.col("event_time_ms").between(0, YEAR_10000_MS - 1))
        .join(F.broadcast(campaigns), "ad_id")
        .select("campaign_id", F.timestamp_millis("event_time_ms").alias("event_time"), *ids)
    )


def count_views(views: DataFrame, window_ms: int) -> DataFrame:
    window = F.window("event_time", f"{window_ms} milliseconds")
    cells = views.groupBy("campaign_id", window)
    counts = cells.agg(F.count("*").alias("count"), *sums_of_ids()) if ID in views.columns else cells.count()
    sums = [name for name in ("s1", "s2") if name in counts.columns]
    return counts.select("campaign_id", F.unix_millis("window.start").alias("window_start_ms"), "count", *sums)


def sums_of_ids() -> tuple[Column, Column]:
    """Not yet reduced: decimals have room for the ids, and the remainders' squares are small."""
    rest = F.col(ID) % PRIME
    return F.sum(F.col(ID).cast("decimal(15,0)")).alias("s1"), F.sum(rest * rest % PRIME).alias("s2")


def make_writer(config: Config) -> Writer:
    """The cells of a batch come to the driver and go to Redis in one pipeline: there are few of them."""
    client = connect(config["redis"], retries=config["sink"] in RETRYING)
    crash_points = CrashPoints(Path(config["crash_path"]))

    def write(counts: DataFrame, batch: int) -> None:
        write_batch(SINKS[config["sink"]], client, batch, rows_of(counts), crash_points)

    def write_summed(counts: DataFrame, batch: int) -> None:
        write_batch(SUMMED_SINKS[config["sink"]], client, batch, summed_rows_of(counts), crash_points)

    return write_summed if config["checksum"] else write


def rows_of(counts: DataFrame) -> Iterable[tuple[str, int, int]]:
    return ((row["campaign_id"], row["window_start_ms"], row["count"]) for row in counts.collect())


def summed_rows_of(counts: DataFrame) -> Iterable[tuple[str, int, Summed]]:
    for row in counts.collect():
        summed = Summed(row["count"], int(row["s1"]) % ID_RANGE, row["s2"] % PRIME)
        yield row["campaign_id"], row["window_start_ms"], summed


def start_query(session: SparkSession, config: Config, parse: Parser, write: Writer) -> StreamingQuery:
    """`totals` counts in the stream, over all batches; `deltas` counts within each batch."""
    window_ms = config["window_ms"]
    views = known_views(parse(read_records(session, config)), read_ads(connect(config["redis"])))
    if config["sink"] == "absolute":
        watermark = f"{config['watermark_ms']} milliseconds"
        return start(count_views(views.withWatermark("event_time", watermark), window_ms), config, write)
    return start(views, config, lambda batch, number: write(count_views(batch, window_ms), number))


def start(stream: DataFrame, config: Config, write: Writer) -> StreamingQuery:
    return (
        stream.writeStream.outputMode("update")
        .foreachBatch(write)
        .option("checkpointLocation", config["checkpoint"])
        .trigger(processingTime=config["trigger"])
        .start()
    )


class Progress(StreamingQueryListener):
    """Writes a line per batch. Spark reports them some time after the commit, so a crash may lose the last ones."""

    def __init__(self, log: ProgressLog, ended: threading.Event) -> None:
        self._log = log
        self._ended = ended

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        pass

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        progress = event.progress
        [offsets] = json.loads(progress.sources[0].endOffset).values()
        self._log.write(
            batch=progress.batchId,
            rows=progress.numInputRows,
            offsets=offsets,
            watermark_ms=epoch_ms(progress.eventTime.get("watermark", "")),
            dropped=sum(operator.numRowsDroppedByWatermark for operator in progress.stateOperators),
            took_ms=progress.batchDuration,
            state_bytes=sum(state_bytes(operator) for operator in progress.stateOperators),
        )

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        pass

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: ARG002, N802
        self._ended.set()


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


def end(session: SparkSession, config: Config) -> None:
    """A JVM writes an archive of its classes when it ends in order; else it ends with us, which is faster.

    Who wants an archive also says how long it may take, and ends us then.
    """
    gateway = session.sparkContext._gateway
    session.stop()
    if gateway and any(option in config["java_options"] for option in MAKES_ARCHIVE):
        gateway.proc.stdin.close()  # which is how it is told
        gateway.proc.wait()


def run(config: Config, begin: Callable[[SparkSession], StreamingQuery]) -> int:
    """Run until SIGTERM. Python alone takes the signal: the JVM has to live until the query is stopped."""
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    session = make_session(config)
    await_services(config)
    session.streams.addListener(Progress(ProgressLog(config["progress_path"]), ended))
    query = begin(session)
    while query.isActive and not ended.wait(0.5):
        pass
    failure = query.exception()
    stop_between_batches(query)
    end(session, config)
    if failure:
        reason, _, _ = str(failure).partition("\n=== Streaming Query ===")  # then comes the plan, pages of it
        print(f"The query failed: {reason.strip()}", file=sys.stderr)
    return 1 if failure else 0


def chosen_parser(config: Config) -> str:
    name: str = config["options"].get(PARSER_OPTION, BEST)
    if name not in PARSERS:
        sys.exit(f"{PARSER_OPTION} is {name!r}; give one of {', '.join(PARSERS)}.")
    return name


def own_settings(config: Config) -> dict[str, str]:
    """For those who compare. Of the connectors the names tell the version; where they lie is nobody's concern."""
    own = {key: value for key, value in config["options"].items() if key.startswith(OWN_OPTION)}
    jars = ", ".join(Path(jar).name for jar in config["jars"])
    settings = {**session_settings({**config, "java_options": ""}), **own, PARSER_OPTION: chosen_parser(config)}
    return settings | dict.fromkeys(connectors(config), jars)


def main(config_path: str) -> int:
    config = read_orders(config_path)
    parse = with_ids if config["checksum"] else PARSERS[chosen_parser(config)]
    tell_settings(config["progress_path"], own_settings(config))
    return run(config, lambda session: start_query(session, config, parse, make_writer(config)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
