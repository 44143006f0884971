"""The shared part of the jobs that write their counts into a table of campaign, window and count.

A sink takes either the totals of each window from Spark's state, or the counts of each batch alone, which it adds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (the name everybody knows it by)
from pyspark.sql.streaming.query import StreamingQuery

from workloads.ad_impressions.jobs.ads import read_ads
from workloads.ad_impressions.jobs.spark import count_views, views_of
from workloads.ad_impressions.jobs.spark_parse import BEST, PARSERS
from workloads.jobs.redis_results import connect
from workloads.jobs.run_config import Config
from workloads.jobs.spark_history import Part
from workloads.jobs.spark_stream import read_records, run_query, start
from workloads.jobs.spark_table_sinks import Native, Step, by_sink, by_steps

TABLE = "ad_counts"
CAMPAIGN, OPENS, VIEWS = "campaign_id", "window_start", "views"


class Batches(NamedTuple):
    """Writes each batch by a function of ours (`foreachBatch`)."""

    write: Step
    totals: bool = False  # of each window, instead of what the batch adds


Sink = Batches | Native


def main(config_path: str, sinks: Mapping[str, Sink], create: Callable[[SparkSession, Config], None]) -> int:
    """Run the job. `create` makes the table if it does not exist."""

    def begin(session: SparkSession, config: Config) -> StreamingQuery:
        create(session, config)
        sink = sinks[config["sink"]]
        return into_table(session, config, sink) if isinstance(sink, Native) else by_batch(session, config, sink)

    return run_query(config_path, begin)


def into_table(session: SparkSession, config: Config, sink: Native) -> StreamingQuery:
    """Write each window once, when the watermark has passed its end."""
    return by_sink(counts(views(session, config, late="drop"), config), sink, config)


def by_batch(session: SparkSession, config: Config, sink: Batches) -> StreamingQuery:
    write = by_steps((sink.write,), config)
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
