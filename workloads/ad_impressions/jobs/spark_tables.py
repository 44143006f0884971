"""The shared part of the jobs that write their counts into a table of campaign, window and count.

A sink takes either the totals of each window from Spark's state, or the counts of each batch alone, which it adds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (the name everybody knows it by)
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from workloads.ad_impressions.jobs.ads import read_ads
from workloads.ad_impressions.jobs.spark import count_views, views_of
from workloads.ad_impressions.jobs.spark_parse import BEST, PARSERS
from workloads.jobs.crash_points import CrashPoints
from workloads.jobs.redis_results import connect
from workloads.jobs.run_config import Config
from workloads.jobs.spark_history import Part
from workloads.jobs.spark_stream import Writer, read_records, run_query, start

TABLE = "ad_counts"
CAMPAIGN, OPENS, VIEWS = "campaign_id", "window_start", "views"


class Batches(NamedTuple):
    """Writes each batch by a function of ours (`foreachBatch`)."""

    write: Callable[[DataFrame, int, Config], None]
    totals: bool = False  # of each window, instead of what the batch adds


class Native(NamedTuple):
    """Spark's own sink, which gets each window once, when the watermark has passed its end."""

    begin: Callable[[DataStreamWriter, Config], StreamingQuery]


Sink = Batches | Native


def main(config_path: str, sinks: Mapping[str, Sink], create: Callable[[SparkSession, Config], None]) -> int:
    """Run the job. `create` makes the table if it does not exist."""

    def begin(session: SparkSession, config: Config) -> StreamingQuery:
        create(session, config)
        sink = sinks[config["sink"]]
        return into_table(session, config, sink) if isinstance(sink, Native) else by_batch(session, config, sink)

    return run_query(config_path, begin)


def into_table(session: SparkSession, config: Config, sink: Native) -> StreamingQuery:
    writer = counts(views(session, config, late="drop"), config).writeStream.outputMode("append")
    writer = writer.option("checkpointLocation", config["checkpoint"]).trigger(processingTime=config["trigger"])
    return sink.begin(writer, config)


def by_batch(session: SparkSession, config: Config, sink: Batches) -> StreamingQuery:
    write = crashing(lambda batch, number: sink.write(batch, number, config), config)
    if sink.totals:
        return start(counts(views(session, config, late="drop"), config), config, write)
    return start(views(session, config, late="keep"), config, lambda batch, n: write(counts(batch, config), n))


def views(session: SparkSession, config: Config, late: str) -> DataFrame:
    watermark = f"{config['watermark_ms']} milliseconds" if late == "drop" else ""
    return views_of(
        [Part(read_records(session, config))], PARSERS[BEST], read_ads(connect(config)), watermark=watermark
    )


def counts(found: DataFrame, config: Config) -> DataFrame:
    told = count_views(found, config["window_ms"])
    return told.select(CAMPAIGN, F.timestamp_millis("window_start_ms").alias(OPENS), F.col("count").alias(VIEWS))


def crashing(write: Writer, config: Config) -> Writer:
    """A batch is one write, so a crash can come before and after it."""
    points = CrashPoints(Path(config["crash_path"]))

    def written(batch: DataFrame, number: int) -> None:
        batch = batch.persist()
        if batch.isEmpty():  # no write, so no crash points
            return
        points.at("c1", number)
        write(batch, number)
        points.at("c3", number)
        points.at("c4", number)
        batch.unpersist()

    return written
