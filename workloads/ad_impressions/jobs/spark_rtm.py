"""The Spark job in Real-Time Mode: the query of spark.py, which emits counts event by event and not batch by batch.

    python spark_rtm.py CONFIG.json

The tasks of a batch all run at the same time, as long as the trigger says; then Spark commits offsets and state and
starts the next batch. Thus the trigger is the interval between commits and not between results, and a crash repeats
everything since the last commit. A writer in the JVM (RedisWriter.java) writes the rows to Redis: a Python one would
keep them in its buffers until the end of the batch.
"""

from __future__ import annotations

import sys
import threading
from typing import Any
from urllib.parse import unquote, urlsplit

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (the name everybody knows it by)
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery

from workloads.ad_impressions.jobs import spark
from workloads.ad_impressions.jobs.ads import read_ads
from workloads.ad_impressions.jobs.id_sums import ID_RANGE, PRIME
from workloads.ad_impressions.jobs.spark_parse import PARSERS, Parser, with_ids
from workloads.jobs import spark_stream
from workloads.jobs.progress_log import ProgressLog, tell_settings
from workloads.jobs.redis_results import connect
from workloads.jobs.run_config import Config, read_config

ANY_TRIGGER, ANY_MASTER = "0 seconds", "local[*]"  # the defaults of a run config
SHORTEST_TRIGGER = "5 seconds"  # the shortest that Spark allows
SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
SPARE_SLOTS = 2
RISING = "rising"

REAL_TIME = {
    SHUFFLE_PARTITIONS: "2",
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # How long a row may wait for others on its way to the state: Spark's 50 would be half of a row's latency.
    "spark.shuffle.streaming.networkBufferMaxWaitTimeMs": "10",
}


def in_real_time(config: Config) -> Config:
    """Apply the settings that this mode needs to a run config; the user's own take precedence. Each task waits for its
    events in its own slot, thus there must be slots for all tasks, however few cores there are.
    """
    options = REAL_TIME | config["options"]
    slots = config["partitions"] + int(options[SHUFFLE_PARTITIONS]) + SPARE_SLOTS
    return config | {
        "options": options,
        "master": f"local[{slots}]" if config["master"] == ANY_MASTER else config["master"],
        "trigger": SHORTEST_TRIGGER if config["trigger"] == ANY_TRIGGER else config["trigger"],
    }


def start_query(session: SparkSession, config: Config, parse: Parser) -> StreamingQuery:
    views = spark.known_views(parse(spark_stream.read_records(session, config)), read_ads(connect(config)))
    lateness = f"{config['watermark_ms']} milliseconds"
    counts = spark.count_views(views.withWatermark("event_time", lateness), config["window_ms"])
    stream = with_sums_in_one(counts).writeStream.outputMode("update")
    stream.option("checkpointLocation", config["checkpoint"])
    stream.trigger(realTime=config["trigger"])  # type: ignore[call-overload]  # there, and not in its types
    stream._jwrite.foreach(redis_writer(session, config))
    return stream.start()


class Progress(spark_stream.Progress):
    """Also reports the durations of a batch's phases, and the interval before it in which no events were taken."""

    def __init__(self, log: ProgressLog, ended: threading.Event, lasts_ms: int) -> None:
        super().__init__(log, ended)
        self._lasts_ms = lasts_ms
        self._taken_until_ms: int | None = None  # until when the last batch took events

    def line(self, progress: StreamingQueryProgress) -> dict[str, Any]:
        from_ms, end_ms = taken_from_ms(progress), None
        if self._taken_until_ms is not None and self._taken_until_ms <= from_ms:
            end_ms = [self._taken_until_ms, from_ms]
        self._taken_until_ms = from_ms + self._lasts_ms
        return {**super().line(progress), "end_ms": end_ms, "durations_ms": dict(progress.durationMs)}


def taken_from_ms(progress: StreamingQueryProgress) -> int:
    """Return when the tasks of a batch began to take events, which they do for the length of the trigger. The time
    before belongs to the end of the last batch, as does the time after, and the slow start of tasks is latency.
    """
    took_ms = progress.durationMs
    ended_ms = spark_stream.epoch_ms(progress.timestamp) + took_ms["triggerExecution"]
    return ended_ms - sum(took_ms[part] for part in ("addBatch", "walCommit", "commitOffsets"))


def lasts_ms(trigger: str) -> int:
    """Parse a trigger as Spark does."""
    triggers = SparkSession.active()._jvm.org.apache.spark.sql.streaming.Trigger  # type: ignore[union-attr]
    return int(triggers.RealTime(trigger).batchDurationMs())


def with_sums_in_one(counts: DataFrame) -> DataFrame:
    """In checksum mode, join the sums as Redis stores them: "S1,S2"."""
    if "s1" not in counts.columns:
        return counts
    s1, s2 = (F.col("s1") % ID_RANGE).cast("long"), (F.col("s2") % PRIME).cast("long")
    sums = F.concat_ws(",", s1.cast("string"), s2.cast("string"))
    return counts.select("campaign_id", "window_start_ms", "count", sums.alias("sums"))


def redis_writer(session: SparkSession, config: Config) -> Any:
    at = urlsplit(config["redis"])
    return session._jvm.RedisWriter(  # type: ignore[union-attr]
        config["redis"],
        at.hostname or "localhost",
        at.port or 6379,
        unquote(at.username or ""),
        unquote(at.password or ""),
        int(at.path.strip("/") or 0),
        config["redis_prefix"],
        config["sink"] == RISING,
    )


def own_settings(config: Config) -> dict[str, str]:
    return {**spark.own_settings(config), "master": config["master"], "trigger": config["trigger"]}


def main(config_path: str) -> int:
    config = in_real_time(read_config(config_path))
    parse = with_ids if config["checksum"] else PARSERS[spark.chosen_parser(config)]
    tell_settings(config["progress_path"], own_settings(config))
    return spark_stream.run(
        config,
        lambda session: start_query(session, config, parse),
        lambda log, ended: Progress(log, ended, lasts_ms(config["trigger"])),
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
