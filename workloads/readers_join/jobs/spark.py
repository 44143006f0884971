"""The Spark job: reads, joined with the different articles of their reader in a sliding window.

    python spark.py CONFIG.json

The reads go to an aggregation by sliding windows, and to a join of two streams with its result, by an interval of one
slide. A window leaves the aggregation when the watermark has passed its end (append mode), and meets its reads in the
join.
"""

from __future__ import annotations

import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (the name everybody knows it by)
from pyspark.sql.streaming.query import StreamingQuery

from workloads.jobs import spark_stream
from workloads.jobs.event_sinks import WRITERS
from workloads.jobs.reads import MINUTE
from workloads.jobs.run_config import Config
from workloads.jobs.spark_json import number_of_key, whole_events

EVENT = "reader string, article string, read_at long"
SLIDE = f"INTERVAL {MINUTE.slide_ms // 1000} SECOND"


def reads_of(records: DataFrame, watermark_ms: int) -> DataFrame:
    """Parse reads. A record that is no read lacks a field or a number, and is left out."""
    reads = whole_events(records, EVENT, number_of_key().alias("event"))
    timed = reads.withColumn("read_at", F.timestamp_millis("read_at"))
    return timed.withWatermark("read_at", f"{watermark_ms} milliseconds")


def counted(reads: DataFrame) -> DataFrame:
    window = F.window("read_at", f"{MINUTE.length_ms} milliseconds", f"{MINUTE.slide_ms} milliseconds")
    articles = F.size(F.collect_set("article")).alias("articles")
    windows = reads.groupBy(F.col("reader").alias("counted"), window.alias("window")).agg(articles)
    return windows.select("counted", "articles", F.window_time("window").alias("last"))  # its last microsecond


def joined(reads: DataFrame) -> DataFrame:
    is_of_second = (F.col("read_at") <= F.col("last")) & (F.col("read_at") > F.col("last") - F.expr(SLIDE))
    found = reads.join(counted(reads), (F.col("reader") == F.col("counted")) & is_of_second)
    record = F.struct(
        F.col("reader").alias("campaign"), F.col("event").alias("window"), F.struct("articles").alias("output")
    )
    return found.select(F.to_json(record).alias("value"))


def start_query(session: SparkSession, config: Config) -> StreamingQuery:
    reads = reads_of(spark_stream.read_records(session, config), config["watermark_ms"])
    return spark_stream.start(joined(reads), config, WRITERS[config["sink"]](config), mode="append")


if __name__ == "__main__":
    sys.exit(spark_stream.run_query(sys.argv[1], start_query))
