"""The Spark job: different articles of each reader in a sliding window, in three ways that people write it.

    python spark.py CONFIG.json

Spark refuses `count(DISTINCT ...)` of a stream. The sink chooses the way around that.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from pyspark.sql import Column, DataFrame, GroupedData, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (the name everybody knows it by)
from pyspark.sql.streaming.query import StreamingQuery

from workloads.jobs import spark_stream
from workloads.jobs.crash_points import CrashPoints
from workloads.jobs.reads import ARTICLES, MINUTE, READS, Sliding
from workloads.jobs.redis_results import connect, key_of
from workloads.jobs.redis_sinks import absolute, write_batch
from workloads.jobs.run_config import Config
from workloads.jobs.spark_json import whole_events
from workloads.jobs.spark_stream import Writer, read_records, start

EVENT = "reader string, article string, read_at long"


def reads_of(records: DataFrame) -> DataFrame:
    """Parse reads. A record that is no event lacks a field, and is left out."""
    return whole_events(records, EVENT).withColumn("read_at", F.timestamp_millis("read_at"))


def by_window(reads: DataFrame, windows: Sliding, *keys: str) -> GroupedData:
    window = F.window("read_at", f"{windows.length_ms} milliseconds", f"{windows.slide_ms} milliseconds")
    return reads.groupBy(*keys, window.alias("window"))


def as_set(reads: DataFrame, windows: Sliding) -> DataFrame:
    """Keep the articles of each reader and window as a set, whose size is the answer."""
    return _counted(reads, windows, F.size(F.collect_set("article")))


def approximate(reads: DataFrame, windows: Sliding) -> DataFrame:
    """Keep a HyperLogLog++ of each reader and window, with Spark's own standard error of 5 %."""
    return _counted(reads, windows, F.approx_count_distinct("article"))


def in_two_levels(reads: DataFrame, windows: Sliding) -> DataFrame:
    """Group by the article as well, then count the groups. Spark allows two aggregations in append mode only."""
    groups = by_window(reads, windows, "reader", "article").agg(F.count("*").alias("times"))
    return groups.groupBy("reader", "window").agg(F.sum("times").alias(READS), F.count("*").alias(ARTICLES))


def _counted(reads: DataFrame, windows: Sliding, articles: Column) -> DataFrame:
    return by_window(reads, windows, "reader").agg(F.count("*").alias(READS), articles.alias(ARTICLES))


# By sink: the query, and its output mode.
WAYS: Mapping[str, tuple[Callable[[DataFrame, Sliding], DataFrame], str]] = {
    "set": (as_set, "update"),
    "two-level": (in_two_levels, "append"),
    "approximate": (approximate, "update"),
}


def make_writer(config: Config) -> Writer:
    """Return a writer of totals: a batch that comes again writes the same."""
    client, crash_points = connect(config), CrashPoints(Path(config["crash_path"]))

    def write(cells: DataFrame, batch: int) -> None:
        rows = [
            (key_of(name, row["reader"]), row["opens"], row[name])
            for row in cells.collect()
            for name in (READS, ARTICLES)
        ]
        write_batch(absolute, client, batch, rows, crash_points)

    return write


def start_query(session: SparkSession, config: Config, windows: Sliding = MINUTE) -> StreamingQuery:
    reads = reads_of(read_records(session, config)).withWatermark("read_at", f"{config['watermark_ms']} milliseconds")
    query, mode = WAYS[config["sink"]]
    cells = query(reads, windows).select("reader", F.unix_millis("window.start").alias("opens"), READS, ARTICLES)
    return start(cells, config, make_writer(config), mode)


if __name__ == "__main__":
    sys.exit(spark_stream.run_query(sys.argv[1], start_query))
