"""The Spark job of sessions.

    python spark_sessions.py CONFIG.json

Spark supports sessions in append mode only: each is emitted once, when the watermark has passed its end.
"""

from __future__ import annotations

import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (the name everybody knows it by)
from pyspark.sql.streaming.query import StreamingQuery

from workloads.jobs import spark_stream
from workloads.jobs.run_config import Config
from workloads.jobs.spark_json import whole_events
from workloads.jobs.spark_stream import read_records
from workloads.page_visits.jobs.spark import make_writer
from workloads.page_visits.jobs.visits import DIFFERENT, GAP_MS, PAGES

EVENT = "visitor string, page string, seen_at long"


def visits_of(records: DataFrame) -> DataFrame:
    """Parse visits. A record that is no event lacks a field, and is left out."""
    return whole_events(records, EVENT).withColumn("seen_at", F.timestamp_millis("seen_at"))


def sessions_of(visits: DataFrame, watermark_ms: int) -> DataFrame:
    session = F.session_window("seen_at", f"{GAP_MS} milliseconds")
    late = visits.withWatermark("seen_at", f"{watermark_ms} milliseconds")
    sessions = late.groupBy("visitor", session)
    counts = sessions.agg(F.count("*").alias(PAGES), F.size(F.collect_set("page")).alias(DIFFERENT))
    return counts.select("visitor", F.unix_millis("session_window.start").alias("opens"), PAGES, DIFFERENT)


def start_query(session: SparkSession, config: Config) -> StreamingQuery:
    sessions = sessions_of(visits_of(read_records(session, config)), config["watermark_ms"])
    return spark_stream.start(sessions, config, make_writer(config, "visitor", (PAGES, DIFFERENT)), mode="append")


if __name__ == "__main__":
    sys.exit(spark_stream.run_query(sys.argv[1], start_query))
